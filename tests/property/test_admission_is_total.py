"""Whatever a well-typed object says, admission answers with faults or with a canonical object, never with a crash.

Objects are made from the schema table itself, so every field of every kind with rules takes part: empty, odd and
hostile values in every place that decoding lets through.
"""

from __future__ import annotations

import copy
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubedra import cel
from kubedra.api import canonical, conversion, errors, kinds, schema
from kubedra.api.defaults import apply_defaults
from kubedra.base.features import FeatureGates
from kubedra.server.access.users import Decision, User
from kubedra.server.registry.strategies import strategy_for
from kubedra.server.registry.strategy import StrategyContext

# The compiler raises the interpreter's recursion limit when it is first used; hypothesis wants it done before.
cel.compile_selector("true", features=FeatureGates(), version="1.37")

Tree = dict[str, Any]
NOW = "2026-01-01T00:00:00Z"
DEPTH = 7

TEXTS = st.sampled_from(
    ["", "a", "A_", "a/b", "a//b", "x.example.com", "1.2.3", "true", "In", "Exists", "Equal", "All", "ü", "x" * 70]
)
KEYS = st.sampled_from(["", "a", "a/b", "cpu", "A_", "x.example.com/y"])
NUMBERS = st.sampled_from([-1, 0, 1, 3, 33, 2**31])
QUANTITIES = st.sampled_from(["0", "1", "-1", "1500m", "1Gi", "100"])
SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "string": TEXTS,
    "integer": NUMBERS,
    "number": NUMBERS,
    "boolean": st.booleans(),
    "quantity": QUANTITIES,
    "intorstring": st.one_of(NUMBERS, st.sampled_from(["10%", "x"])),
    "time": st.just(NOW),
    "microtime": st.just("2026-01-01T00:00:00.000000Z"),
    "any": st.sampled_from([{"a": 1}, "x", 3, [None], {}]),
}


def values(field: schema.Field, depth: int) -> st.SearchStrategy[Any]:
    if field.ref:
        return objects(field.ref, depth - 1)
    if field.type == "array":
        items = values(field.items, depth - 1) if field.items is not None else SCALARS["any"]
        return st.lists(items, max_size=2 if depth > 2 else 0)
    if field.type == "object":
        inner = values(field.values, depth - 1) if field.values is not None else SCALARS["any"]
        return st.dictionaries(KEYS, inner, max_size=2 if depth > 2 else 0)
    return SCALARS.get(field.type, SCALARS["any"])


@cache
def objects(definition: str, depth: int) -> st.SearchStrategy[Tree]:
    if depth <= 0:
        return st.just({})
    fields = schema.definition(definition).fields
    chosen = {
        name: st.deferred(lambda field=field: values(field, depth))  # type: ignore[misc]
        for name, field in fields.items()
        if name not in ("apiVersion", "kind", "metadata", "managedFields")
    }
    return st.fixed_dictionaries({}, optional=chosen)


KINDS = [
    kind
    for kind in kinds.ALL
    if kind.group == "resource.k8s.io"
    or kind.kind
    in (
        "Pod",
        "Node",
        "Namespace",
        "ConfigMap",
        "Secret",
        "Event",
        "ResourceQuota",
        "Deployment",
        "StatefulSet",
        "DaemonSet",
        "ReplicaSet",
        "Job",
        "CronJob",
        "PodDisruptionBudget",
        "PriorityClass",
        "Lease",
        "Role",
        "ClusterRole",
        "RoleBinding",
        "ClusterRoleBinding",
    )
]


def context(kind: kinds.Kind[Any], operation: str, subresource: str, features: FeatureGates) -> StrategyContext:
    return StrategyContext(
        kind=kind,
        operation=operation,
        namespace="default",
        name="x",
        subresource=subresource,
        user=User("someone"),
        features=features,
        now=NOW,
        namespace_labels=lambda _name: {},
        authorize=lambda _asked: Decision(False),
    )


FEATURES = [FeatureGates("1.37"), FeatureGates("1.37", {"DRAListTypeAttributes": True, "DRAConsumableCapacity": False})]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.version}-{kind.kind}")
@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_admission_is_total(kind: kinds.Kind[Any], data: st.DataObject) -> None:
    features = data.draw(st.sampled_from(FEATURES))
    version = conversion.storage_api_version(kind.api_version, kind.kind)
    stored_kind = kinds.by_api_version(version, kind.kind)
    assert stored_kind is not None
    strategy = strategy_for(stored_kind)

    def admitted() -> Tree:
        tree = data.draw(objects(kind.definition, DEPTH))
        tree.update(apiVersion=kind.api_version, kind=kind.kind)
        tree["metadata"] = {"name": "x", "uid": "u", **({"namespace": "default"} if kind.namespaced else {})}
        apply_defaults(kind.group, kind.version, kind.kind, tree, now=NOW)
        return conversion.convert(tree, kind.api_version, version)

    old = admitted()
    where = context(stored_kind, "create", "", features)
    strategy.prepare_for_create(old, where)
    found = strategy.validate_create(old, where)
    errors.invalid(stored_kind, "x", found).status()
    strategy.canonicalize(old)
    once = copy.deepcopy(old)
    strategy.canonicalize(old)
    assert old == once
    assert canonical.same_meaning(old, once)
    for subresource in ("", *stored_kind.subresources):
        new = admitted()
        where = context(stored_kind, "update", subresource, features)
        before = copy.deepcopy(old)
        strategy.prepare_for_update(new, old, where)
        errors.invalid(stored_kind, "x", strategy.validate_update(new, old, where)).status()
        strategy.warnings(new, old, where)
        assert old == before, "what is stored is shared and must not change"
    again = conversion.convert(conversion.convert(once, version, kind.api_version), kind.api_version, version)
    strategy.canonicalize(again)
    if kind.version != "v1beta1":
        assert again == once
