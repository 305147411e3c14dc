"""One object, several versions: resource.k8s.io v1, v1beta2, v1beta1, v1alpha3, and the two kinds of Event.

Only shapes change here. The hub is the newest form (resource.k8s.io/v1, core/v1 for events): it is what is stored,
validated and scheduled by; every other version is converted to it on the way in and from it on the way out. A
conversion never fails and never looks at the meaning of a value: what is wrong is found by validation afterwards,
with the hub's field paths.

Upstream counterpart: pkg/apis/resource/v1beta1/conversion.go, pkg/apis/core/v1/conversion.go and the generated
conversions (everything not named here has the same shape in every version).
"""

from __future__ import annotations

from typing import Any

Tree = dict[str, Any]

RESOURCE_GROUP = "resource.k8s.io"
CORE_EVENTS = "v1"
NEW_EVENTS = "events.k8s.io/v1"

# Members of a v1beta1 request that live under `exactly` since v1beta2.
_FLATTENED = (
    "deviceClassName",
    "selectors",
    "allocationMode",
    "count",
    "adminAccess",
    "tolerations",
    "capacity",
    "derivedAttributes",
)

_EVENT_NAMES = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_EVENT_NAMES_BACK = {new: old for old, new in _EVENT_NAMES.items()}


def storage_api_version(api_version: str, kind: str) -> str:
    """Name the version in which objects of a kind are stored and validated."""
    if api_version.startswith(RESOURCE_GROUP + "/"):
        if kind.removesuffix("List") == "ResourcePoolStatusRequest":
            return RESOURCE_GROUP + "/v1alpha3"
        return RESOURCE_GROUP + "/v1"
    if api_version == NEW_EVENTS:
        return CORE_EVENTS
    return api_version


def convert(tree: Tree, from_version: str, to_version: str) -> Tree:
    """Give an object the shape of another version of its group (`resource.k8s.io/v1beta1`).

    The tree is not changed; what need not change is shared with the result. `kind` must be set in the tree.
    """
    if from_version == to_version:
        return tree
    result = dict(tree)
    if "apiVersion" in result:
        result["apiVersion"] = to_version
    kind = tree.get("kind", "")
    if kind == "Event":
        return _rename_event(result, _EVENT_NAMES if to_version == NEW_EVENTS else _EVENT_NAMES_BACK)
    if from_version == RESOURCE_GROUP + "/v1beta1":
        return _from_v1beta1(kind, result)
    if to_version == RESOURCE_GROUP + "/v1beta1":
        return _to_v1beta1(kind, result)
    return result


def _rename_event(tree: Tree, renamed: dict[str, str]) -> Tree:
    return {renamed.get(name, name): value for name, value in tree.items()}


def _from_v1beta1(kind: str, tree: Tree) -> Tree:
    if kind == "ResourceSlice":
        return _replace(tree, "spec", _slice_from_v1beta1)
    return _replace_claim_spec(kind, tree, _request_from_v1beta1)


def _to_v1beta1(kind: str, tree: Tree) -> Tree:
    if kind == "ResourceSlice":
        return _replace(tree, "spec", _slice_to_v1beta1)
    return _replace_claim_spec(kind, tree, _request_to_v1beta1)


def _replace(tree: Tree, member: str, change: Any) -> Tree:
    """Copy a tree with one member changed; a member that is no object stays as it is."""
    value = tree.get(member)
    return {**tree, member: change(value)} if isinstance(value, dict) else tree


def _replace_claim_spec(kind: str, tree: Tree, change: Any) -> Tree:
    def devices(value: Tree) -> Tree:
        requests = value.get("requests")
        if not isinstance(requests, list):
            return value
        return {**value, "requests": [change(item) if isinstance(item, dict) else item for item in requests]}

    def spec(value: Tree) -> Tree:
        return _replace(value, "devices", devices)

    if kind == "ResourceClaim":
        return _replace(tree, "spec", spec)
    if kind == "ResourceClaimTemplate":
        return _replace(tree, "spec", lambda value: _replace(value, "spec", spec))
    return tree


def _request_from_v1beta1(request: Tree) -> Tree:
    result = {name: value for name, value in request.items() if name not in _FLATTENED}
    exactly = {name: request[name] for name in _FLATTENED if _is_set(name, request.get(name))}
    if exactly:
        result["exactly"] = exactly
    return result


def _is_set(name: str, value: Any) -> bool:
    """Tell a zero value from one that was given: `adminAccess: false` and empty lists were given."""
    if name in ("deviceClassName", "allocationMode"):
        return value not in (None, "")
    if name == "count":
        return value not in (None, 0)
    return value is not None


def _request_to_v1beta1(request: Tree) -> Tree:
    result = {name: value for name, value in request.items() if name != "exactly"}
    # The class is no pointer there, so it is printed even where a list of alternatives makes it meaningless.
    result["deviceClassName"] = ""
    exactly = request.get("exactly")
    if isinstance(exactly, dict):
        result.update(exactly)
    return result


def _slice_from_v1beta1(spec: Tree) -> Tree:
    result = dict(spec)
    # These two are plain values there: their zero means unset.
    if result.get("nodeName") == "":
        del result["nodeName"]
    if result.get("allNodes") is False:
        del result["allNodes"]
    devices = spec.get("devices")
    if isinstance(devices, list):
        result["devices"] = [_device_from_v1beta1(item) if isinstance(item, dict) else item for item in devices]
    return result


def _device_from_v1beta1(device: Tree) -> Tree:
    basic = device.get("basic")
    flat = {"name": device["name"]} if "name" in device else {}
    return {**flat, **basic} if isinstance(basic, dict) else flat


def _slice_to_v1beta1(spec: Tree) -> Tree:
    devices = spec.get("devices")
    if not isinstance(devices, list):
        return spec
    return {
        **spec,
        "devices": [_device_to_v1beta1(item) if isinstance(item, dict) else item for item in devices],
    }


def _device_to_v1beta1(device: Tree) -> Tree:
    return {
        "name": device.get("name", ""),
        "basic": {name: value for name, value in device.items() if name != "name"},
    }
