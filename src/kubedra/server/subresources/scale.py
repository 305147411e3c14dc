"""The scale subresource of workloads: replicas through `autoscaling/v1` Scale.

Upstream counterpart: ScaleREST of each workload registry.
"""

from __future__ import annotations

import asyncio
from typing import Any

from kubedra.api import errors
from kubedra.api import fields as f
from kubedra.api.errors import ApiError, bad_request
from kubedra.server.calls import Call
from kubedra.server.handler import Handler, no_method
from kubedra.server.patch import read_apply_config
from kubedra.server.patch.apply.scale import scale_manager, to_parent, to_scale
from kubedra.server.requests import Response, json_response
from kubedra.server.store import Record
from kubedra.server.subresources.bodies import read_body
from kubedra.server.verbs import patching, reading, updating

Tree = dict[str, Any]
_SCALE = "io.k8s.api.autoscaling.v1.Scale"
_RESOURCES = ("deployments.apps", "replicasets.apps", "statefulsets.apps", "replicationcontrollers")


def install(handler: Handler) -> None:
    """Registers scale."""
    for resource in _RESOURCES:
        handler.subresources[(resource, "scale")] = scale


async def scale(call: Call) -> Response:
    """get, update and patch of the scale."""
    if call.verb == "get":
        return json_response(scale_of(reading.get(call)))
    if call.verb == "update":
        call.check_options()
        body = read_body(call, "Scale", _SCALE)
        updating.check_name(call, body.setdefault("metadata", {}))
        live = _live(call)
        body = scale_manager().update(_owned_scale(call, live), body, call.manager, call.state.now())
    elif call.verb == "patch":
        kind = patching.patch_type(call)
        patching.check_patch_options(call, kind)
        live = _live(call)
        body = _patched(call, kind, _owned_scale(call, live))
    else:
        return no_method()
    updating.check_name(call, body.setdefault("metadata", {}))
    return json_response(scale_of(await _store(call, live, body)))


def _patched(call: Call, kind: str, live: Tree) -> Tree:
    manager, now = call.manager, call.state.now()
    if kind == "apply":
        config = read_apply_config(call.request.body).value
        return scale_manager().apply(live, config, manager, now, force=call.flag("force"))
    patched: Tree = patching.compute(kind, live, patching.parse_patch(call.request.body, kind), _SCALE)
    return scale_manager().update(live, patched, manager, now)


def _owned_scale(call: Call, live: Record) -> Tree:
    """The Scale with the owners of the replicas in its managed fields."""
    made = scale_of(live)
    entries = to_scale(live.shared_tree()["metadata"].get("managedFields") or [], _replicas(call))
    if entries:
        made["metadata"]["managedFields"] = entries
    return made


def _replicas(call: Call) -> dict[str, tuple[str, ...]]:
    return {call.served.kind.api_version: ("f:spec", "f:replicas")}


def _live(call: Call) -> Record:
    live = call.state.store.latest(call.key)
    if live is None:
        raise errors.not_found(call.served.kind, call.name)
    return live


def scale_of(record: Record) -> Tree:
    """The Scale of a workload."""
    tree = record.shared_tree()
    metadata, spec, status = tree["metadata"], tree.get("spec") or {}, tree.get("status") or {}
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    selector = spec.get("selector") or {}
    if "matchLabels" in selector or "matchExpressions" in selector:
        parts = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
        for expression in selector.get("matchExpressions") or ():
            parts.append(_expression(expression))
    else:
        parts = [f"{key}={value}" for key, value in sorted(selector.items())]
    replicas = spec.get("replicas")
    made: Tree = {"replicas": status.get("replicas", 0)}
    if parts:
        made["selector"] = ",".join(parts)
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: metadata[name] for name in kept if name in metadata},
        "spec": {} if not replicas else {"replicas": replicas},
        "status": made,
    }


def _expression(expression: Tree) -> str:
    key, operator = expression.get("key", ""), expression.get("operator", "")
    if operator == "Exists":
        return str(key)
    if operator == "DoesNotExist":
        return f"!{key}"
    word = "in" if operator == "In" else "notin"
    return f"{key} {word} ({','.join(sorted(expression.get('values') or ()))})"


async def _store(call: Call, live: Record, body: Tree) -> Record:
    replicas = (body.get("spec") or {}).get("replicas", 0)
    if not isinstance(replicas, int):
        raise bad_request('Scale in version "v1" cannot be handled as a Scale: spec.replicas is not a number')
    if replicas < 0:
        error = f.invalid("spec.replicas", replicas, "must be greater than or equal to 0")
        details = {
            "name": call.name,
            "group": "autoscaling",
            "kind": "Scale",
            "causes": [{"reason": error.type, "message": error.error_body(), "field": error.field}],
        }
        raise ApiError(422, "Invalid", f'Scale.autoscaling "{call.name}" is invalid: {error}', details)
    given = body["metadata"].get("resourceVersion", "")
    tree = live.tree()
    if given and given != tree["metadata"]["resourceVersion"]:
        raise errors.modified(call.served.kind, call.name)
    tree.setdefault("spec", {})["replicas"] = replicas
    entries = to_parent(
        tree["metadata"].pop("managedFields", []),
        body["metadata"].get("managedFields") or [],
        call.served.kind.api_version,
        _replicas(call),
    )
    if entries:
        tree["metadata"]["managedFields"] = entries
    outcome = updating.replace(call, live, tree)
    return await outcome if isinstance(outcome, asyncio.Future) else outcome
