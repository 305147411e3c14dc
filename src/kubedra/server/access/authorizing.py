"""Who may do what: system:masters everything, everybody else what RBAC objects grant.

The rules of roles and the subjects of bindings are indexed once and kept current by the commits of the store, so an
answer costs a few dictionary look-ups. Upstream counterpart: plugin/pkg/auth/authorizer/rbac.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kubedra.server.access.node_authorizer import authorize_node
from kubedra.server.access.users import MASTERS, Attributes, Decision, User, node_name
from kubedra.server.store import Event, Record, Store

Tree = dict[str, Any]
_GROUP = "rbac.authorization.k8s.io"
CLUSTER_ROLES, ROLES = f"clusterroles.{_GROUP}", f"roles.{_GROUP}"
CLUSTER_BINDINGS, BINDINGS = f"clusterrolebindings.{_GROUP}", f"rolebindings.{_GROUP}"
_ALLOWED = Decision(True)
_DENIED = Decision(False)

KNOWN_ANSWERS = 4096

# Who a binding is for: ("User", name), ("Group", name), ("ServiceAccount", "namespace:name").
Subject = tuple[str, str]
# A granted role: namespace of the binding ("" for cluster bindings), kind and name of the role.
Grant = tuple[str, str, str]


class RbacAuthorizer:
    """Answers from the RBAC objects of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._rules: dict[Grant, list[Tree]] = {}
        self._grants: dict[Subject, dict[tuple[str, str], list[Grant]]] = {}
        # What rules allow whatever the name of the object is: the same few questions come with every write.
        self._allowed: dict[tuple[object, ...], Decision] = {}
        store.on_commit(self._committed)
        for resource in (CLUSTER_ROLES, ROLES, CLUSTER_BINDINGS, BINDINGS):
            for record in store.listing(resource):
                self._put(record)

    def _committed(self, event: Event) -> None:
        resource = event.record.key.resource
        if not resource.endswith(_GROUP):
            return
        self._allowed.clear()
        if event.previous is not None:
            self._remove(event.previous)
        if event.type != "DELETED":
            self._put(event.record)

    def _put(self, record: Record) -> None:
        key, tree = record.key, record.shared_tree()
        if key.resource in (ROLES, CLUSTER_ROLES):
            kind = "Role" if key.resource == ROLES else "ClusterRole"
            self._rules[(key.namespace, kind, key.name)] = tree.get("rules") or []
            return
        place = (key.resource, f"{key.namespace}/{key.name}")
        role = tree.get("roleRef") or {}
        grant: Grant = (key.namespace, role.get("kind", ""), role.get("name", ""))
        for subject in _subjects(tree, key.namespace):
            self._grants.setdefault(subject, {}).setdefault(place, []).append(grant)

    def _remove(self, record: Record) -> None:
        key, tree = record.key, record.shared_tree()
        if key.resource in (ROLES, CLUSTER_ROLES):
            kind = "Role" if key.resource == ROLES else "ClusterRole"
            self._rules.pop((key.namespace, kind, key.name), None)
            return
        place = (key.resource, f"{key.namespace}/{key.name}")
        for subject in _subjects(tree, key.namespace):
            self._grants.get(subject, {}).pop(place, None)

    def authorize(self, user: User, attributes: Attributes) -> Decision:
        """The decision for one question."""
        if MASTERS in user.groups:
            return _ALLOWED
        node = node_name(user)
        denial = _DENIED
        if node:
            decision = authorize_node(self._store, node, attributes)
            if decision is not None:
                if decision.allowed:
                    return decision
                denial = decision
            else:
                for rule in self._rules.get(("", "ClusterRole", "system:node"), ()):
                    if _matches(rule, attributes):
                        return _ALLOWED
        question = (user.name, user.groups, attributes._replace(name="", version="", field_selector=""))
        known = self._allowed.get(question)
        if known is not None:
            return known
        for reason, rules in self.rules_for(user, attributes.namespace):
            for rule in rules:
                if _matches(rule, attributes):
                    decision = Decision(True, reason)
                    if not rule.get("resourceNames"):
                        if len(self._allowed) >= KNOWN_ANSWERS:
                            self._allowed.clear()
                        self._allowed[question] = decision
                    return decision
        return denial

    def rules_for(self, user: User, namespace: str) -> Iterator[tuple[str, list[Tree]]]:
        """The rules that a user has in a namespace, each with a sentence that says which binding grants them."""
        subjects: list[Subject] = [("User", user.name), *(("Group", group) for group in user.groups)]
        if user.name.startswith("system:serviceaccount:"):
            subjects.append(("ServiceAccount", user.name.removeprefix("system:serviceaccount:")))
        for subject in subjects:
            for (resource, place), grants in self._grants.get(subject, {}).items():
                for scope, kind, name in grants:
                    if scope and scope != namespace:
                        continue
                    rules = self._rules.get((scope if kind == "Role" else "", kind, name))
                    if rules:
                        binding = "RoleBinding" if resource == BINDINGS else "ClusterRoleBinding"
                        shown = place if scope else place[1:]
                        yield f'RBAC: allowed by {binding} "{shown}" of {kind} "{name}" to {_shown(subject)}', rules


def _shown(subject: Subject) -> str:
    kind, name = subject
    if kind == "ServiceAccount":
        namespace, _, account = name.partition(":")
        return f'ServiceAccount "{account}/{namespace}"'
    return f'{kind} "{name}"'


def _subjects(binding: Tree, namespace: str) -> Iterator[Subject]:
    for subject in binding.get("subjects") or ():
        kind, name = subject.get("kind", ""), subject.get("name", "")
        if kind == "ServiceAccount":
            yield kind, f"{subject.get('namespace') or namespace}:{name}"
        else:
            yield kind, name


def _matches(rule: Tree, attributes: Attributes) -> bool:
    verbs = rule.get("verbs") or ()
    if attributes.verb not in verbs and "*" not in verbs:
        return False
    if not attributes.resource:
        return any(_path_matches(pattern, attributes.path) for pattern in rule.get("nonResourceURLs") or ())
    groups = rule.get("apiGroups") or ()
    if attributes.group not in groups and "*" not in groups:
        return False
    resources = rule.get("resources") or ()
    wanted = f"{attributes.resource}/{attributes.subresource}" if attributes.subresource else attributes.resource
    any_of_sub = f"*/{attributes.subresource}" if attributes.subresource else wanted
    if wanted not in resources and "*" not in resources and any_of_sub not in resources:
        return False
    names = rule.get("resourceNames") or ()
    return not names or attributes.name in names


def _path_matches(pattern: str, path: str) -> bool:
    return pattern in ("*", path) or (pattern.endswith("*") and path.startswith(pattern[:-1]))
