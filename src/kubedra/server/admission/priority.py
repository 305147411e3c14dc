"""Priority of pods from their PriorityClass.

Upstream counterpart: plugin/pkg/admission/priority.
"""

from __future__ import annotations

from typing import Any

from kubedra.api import errors
from kubedra.server.admission.base import Plugin
from kubedra.server.calls import Call
from kubedra.server.store import Key

Tree = dict[str, Any]
CLASSES = "priorityclasses.scheduling.k8s.io"


class Priority(Plugin):
    """Writes priority and preemption policy into new pods; keeps one global default."""

    def create(self, call: Call, tree: Tree) -> None:
        """Resolves the class of a pod, checks a new default class."""
        if call.served.storage == "pods":
            self._pod(call, tree)
        elif call.served.storage == CLASSES and tree.get("globalDefault"):
            self._only_default(call, tree)

    def update(self, call: Call, tree: Tree, old: Tree) -> None:
        """Keeps what was resolved when the pod was made; checks a class that becomes the default."""
        if call.served.storage == "pods" and not call.subresource:
            spec, before = tree.setdefault("spec", {}), old.get("spec") or {}
            for member in ("priority", "preemptionPolicy"):
                # Changes are refused by validation; a body that leaves them out is not a change.
                if spec.get(member) is None and before.get(member) is not None:
                    spec[member] = before[member]
        if call.served.storage == CLASSES and tree.get("globalDefault") and not old.get("globalDefault"):
            self._only_default(call, tree)

    def _pod(self, call: Call, tree: Tree) -> None:
        spec = tree.setdefault("spec", {})
        name = spec.get("priorityClassName", "")
        value, policy = 0, "PreemptLowerPriority"
        if name:
            record = call.state.store.latest(Key(CLASSES, "", name))
            if record is None:
                why = f"no PriorityClass with name {name} was found"
                raise errors.forbidden(call.served.kind, tree["metadata"].get("name", ""), why)
            chosen: Tree | None = record.shared_tree()
        else:
            chosen = self._default(call)
            if chosen is not None:
                spec["priorityClassName"] = chosen["metadata"]["name"]
        if chosen is not None:
            value, policy = chosen.get("value", 0), chosen.get("preemptionPolicy") or policy
        given = spec.get("priority")
        pod = tree["metadata"].get("name", "")
        if given is not None and given != value:
            why = (
                f"the integer value of priority ({given}) must not be provided in pod spec; "
                f"priority admission controller computed {value} from the given PriorityClass name"
            )
            raise errors.forbidden(call.served.kind, pod, why)
        spec["priority"] = value
        wanted = spec.get("preemptionPolicy")
        if wanted is not None and wanted != policy:
            why = (
                f"the string value of PreemptionPolicy ({wanted}) must not be provided in pod spec; "
                f"priority admission controller computed {policy} from the given PriorityClass name"
            )
            raise errors.forbidden(call.served.kind, pod, why)
        spec["preemptionPolicy"] = policy

    @staticmethod
    def _default(call: Call) -> Tree | None:
        found: Tree | None = None
        for record in call.state.store.listing(CLASSES):
            tree = record.shared_tree()
            if tree.get("globalDefault") and (found is None or tree.get("value", 0) < found.get("value", 0)):
                found = tree
        return found

    def _only_default(self, call: Call, tree: Tree) -> None:
        held = self._default(call)
        name = tree["metadata"].get("name", "")
        if held is not None and held["metadata"]["name"] != name:
            why = f"PriorityClass {held['metadata']['name']} is already marked as default. Only one default can exist"
            raise errors.forbidden(call.served.kind, name, why)
