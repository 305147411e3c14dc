"""What a namespace that can't go yet says about it."""

from __future__ import annotations

from typing import Any

from kubedra.api import codec, core_v1, kinds, meta_v1
from kubedra.controllers import namespaces
from kubedra.controllers.actions import Patch

NOW = "2026-01-01T00:00:00Z"


def namespace(**status: Any) -> core_v1.Namespace:
    tree = {"metadata": {"name": "n", "uid": "u"}, "status": {"phase": "Terminating", **status}}
    return codec.from_tree(core_v1.Namespace, tree)


def conditions(found: core_v1.Namespace, left: namespaces.Left) -> list[dict[str, str]]:
    actions = namespaces.tell_what_is_left(found, left, NOW)
    if not actions:
        return []
    (action,) = actions
    assert isinstance(action, Patch) and action.subresource == "status"
    result: list[dict[str, str]] = action.patch["status"]["conditions"]
    return result


def test_finalizers_that_hold_a_namespace_are_named() -> None:
    held = meta_v1.ObjectMeta(name="a", finalizers=("example.com/x",))
    left: namespaces.Left = {kinds.CONFIG_MAP: [held, held], kinds.RESOURCE_CLAIM: [meta_v1.ObjectMeta(name="b")]}
    said = conditions(namespace(), left)
    by_type = {entry["type"]: entry for entry in said}
    assert by_type["NamespaceContentRemaining"]["message"] == (
        "Some resources are remaining: configmaps. has 2 resource instances, "
        "resourceclaims.resource.k8s.io has 1 resource instances"
    )
    assert by_type["NamespaceFinalizersRemaining"] == {
        "type": "NamespaceFinalizersRemaining",
        "status": "True",
        "reason": "SomeFinalizersRemain",
        "message": "Some content in the namespace has finalizers remaining: example.com/x in 2 resource instances",
        "lastTransitionTime": NOW,
    }
    assert conditions(namespace(conditions=said), left) == []


def test_only_what_changed_is_written_again() -> None:
    pod = meta_v1.ObjectMeta(name="p")
    said = conditions(namespace(), {kinds.POD: [pod, pod]})
    (changed,) = conditions(namespace(conditions=said), {kinds.POD: [pod]})
    assert changed["type"] == "NamespaceContentRemaining" and changed["lastTransitionTime"] == NOW
