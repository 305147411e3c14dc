"""Binding and eviction of pods, and what is not served (exec, attach, port-forward).

Upstream counterpart: pkg/registry/core/pod/storage (BindingREST, EvictionREST).
"""

from __future__ import annotations

from typing import Any

from kubedra.api import errors, kinds
from kubedra.api.errors import ApiError, bad_request
from kubedra.base.selectors import SelectorError, selector_from_object
from kubedra.server.calls import Call
from kubedra.server.handler import Handler, no_method
from kubedra.server.requests import Response, json_response
from kubedra.server.store import Key, Record
from kubedra.server.subresources.bodies import read_body, server_error, success
from kubedra.server.verbs import patching, reading, updating
from kubedra.server.verbs.deleting import Options, delete_object
from kubedra.server.verbs.storing import encoder

Tree = dict[str, Any]
BUDGETS = "poddisruptionbudgets.policy"


def install(handler: Handler) -> None:
    """Registers the subresources of pods."""
    handler.subresources[("pods", "binding")] = bind
    handler.virtual[("", "bindings")] = bind
    handler.subresources[("pods", "eviction")] = evict
    for name in ("ephemeralcontainers", "resize"):
        handler.subresources[("pods", name)] = part
    for name in ("exec", "attach", "portforward", "proxy"):
        handler.subresources[("pods", name)] = not_implemented


async def part(call: Call) -> Response:
    """get, update and patch of a part of the pod; the strategy says which part."""
    if call.verb == "get":
        record = reading.get(call)
    elif call.verb == "update":
        record, _ = await updating.update(call)
    elif call.verb == "patch":
        record, _ = await patching.patch(call)
    else:
        return no_method()
    return Response(200, call.served.bytes_of(record))


async def not_implemented(call: Call) -> Response:
    """exec, attach, portforward and proxy need streams into a container."""
    what = {"portforward": "port-forward"}.get(call.subresource, call.subresource)
    raise ApiError(
        501,
        "NotImplemented",
        f"{what} is not available in this cluster: its pods are plain processes of this machine; "
        "use kubectl logs, or look at the process itself",
    )


async def bind(call: Call) -> Response:
    """Assigns a pod to a node."""
    if call.verb != "create":
        return no_method()
    call.check_options()
    body = read_body(call, "Binding", "io.k8s.api.core.v1.Binding")
    metadata, target = body.get("metadata") or {}, body.get("target") or {}
    name = call.name or metadata.get("name", "")
    if metadata.get("name", "") != name:
        raise bad_request("name in URL does not match name in Binding object")
    if target.get("kind", "") not in ("", "Node"):
        raise server_error(f'target.kind: Unsupported value: "{target["kind"]}": supported values: "Node", "<empty>"')
    if not target.get("name"):
        raise server_error("target.name: Required value")
    state = call.state
    key = Key("pods", call.namespace, name)
    live = state.store.latest(key)
    if live is None:
        raise errors.not_found(kinds.POD, name)
    tree = live.tree()
    _check_bindable(tree, metadata, name)
    spec, own = tree["spec"], tree["metadata"]
    spec["nodeName"] = target["name"]
    for member in ("annotations", "labels"):
        if metadata.get(member):
            own[member] = (own.get(member) or {}) | metadata[member]
    status = tree.setdefault("status", {})
    # The node is settled: upstream clears what was only expected.
    status.pop("nominatedNodeName", None)
    conditions = [c for c in status.get("conditions") or () if c.get("type") != "PodScheduled"]
    observed = {"observedGeneration": own["generation"]} if own.get("generation") else {}
    conditions.append({"type": "PodScheduled", **observed, "status": "True", "lastTransitionTime": state.now()})
    status["conditions"] = conditions
    if not call.dry_run:
        served = state.catalogue.stored["pods"]
        await state.store.put(key, encoder(served, tree), expect=live.revision)
    return json_response(success(), 201)


def _check_bindable(pod: Tree, wanted: Tree, name: str) -> None:
    metadata = pod["metadata"]
    for member, word in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        given = wanted.get(member)
        if given and given != metadata.get(member):
            raise errors.conflict(
                kinds.POD,
                name,
                f"StorageError: invalid object, Code: 4, Key: /registry/pods/{metadata.get('namespace')}/{name}, "
                f"ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: {word} in precondition: {given}, "
                f"{word} in object meta: {metadata.get(member)}",
            )
    why = ""
    if metadata.get("deletionTimestamp"):
        why = f"pod {name} is being deleted, cannot be assigned to a host"
    elif pod["spec"].get("nodeName"):
        why = f'pod {name} is already assigned to node "{pod["spec"]["nodeName"]}"'
    elif pod["spec"].get("schedulingGates"):
        why = f"pod {name} has non-empty .spec.schedulingGates"
    if why:
        text = f'Operation cannot be fulfilled on pods/binding "{name}": {why}'
        raise ApiError(409, "Conflict", text, {"name": name, "kind": "pods/binding"})


async def evict(call: Call) -> Response:
    """Deletes a pod if its disruption budget allows it."""
    if call.verb != "create":
        return no_method()
    call.check_options()
    body = read_body(call, "Eviction", "io.k8s.api.policy.v1.Eviction")
    metadata = body.get("metadata") or {}
    if metadata.get("name", "") != call.name:
        raise bad_request("name in URL does not match name in Eviction object")
    options = body.get("deleteOptions") or {}
    preconditions = options.get("preconditions") or {}
    wanted = Options(
        options.get("gracePeriodSeconds"),
        options.get("propagationPolicy") or "",
        preconditions.get("uid") or "",
        preconditions.get("resourceVersion") or "",
        call.dry_run or bool(options.get("dryRun")),
    )
    live = call.state.store.latest(call.key)
    if live is None:
        raise errors.not_found(kinds.POD, call.name)
    pod = live.shared_tree()
    if not _ignores_budget(pod):
        await _charge_budget(call, pod, wanted.dry_run)
        if not wanted.dry_run:
            await _mark_disrupted(call)
    await delete_object(call, wanted)
    return json_response(success(), 201)


def _ignores_budget(pod: Tree) -> bool:
    phase = (pod.get("status") or {}).get("phase", "")
    return phase in ("Succeeded", "Failed", "Pending") or "deletionTimestamp" in pod["metadata"]


def _budgets(call: Call, pod: Tree) -> list[Record]:
    labels = pod["metadata"].get("labels") or {}
    found: list[Record] = []
    for record in call.state.store.listing(BUDGETS, call.namespace):
        selector = (record.shared_tree().get("spec") or {}).get("selector")
        try:
            matches = selector_from_object(selector).matches(labels)
        except SelectorError:
            matches = False
        if matches:
            found.append(call.state.store.latest(record.key) or record)
    return found


async def _charge_budget(call: Call, pod: Tree, dry_run: bool) -> None:
    budgets = _budgets(call, pod)
    if not budgets:
        return
    if len(budgets) > 1:
        raise server_error(
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        )
    record = budgets[0]
    budget = record.tree()
    name, spec, status = record.key.name, budget.get("spec") or {}, budget.setdefault("status", {})
    healthy, desired = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
    if not _is_ready(pod):
        policy = spec.get("unhealthyPodEvictionPolicy")
        if policy == "AlwaysAllow" or (healthy >= desired and desired > 0):
            return
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        raise _blocked(f"The disruption budget {name} is still being processed by the server.", 10)
    allowed = status.get("disruptionsAllowed", 0)
    if allowed < 0:
        raise errors.forbidden(kinds.POD_DISRUPTION_BUDGET, name, "pdb disruptions allowed is negative")
    if len(status.get("disruptedPods") or ()) > 2000:
        raise _blocked(f"DisruptedPods map too big - too many evictions not confirmed by PDB controller: {name}", 0)
    if allowed == 0:
        raise _blocked(f"The disruption budget {name} needs {desired} healthy pods and has {healthy} currently", 0)
    if dry_run:
        return
    status["disruptionsAllowed"] = allowed - 1
    status["disruptedPods"] = (status.get("disruptedPods") or {}) | {call.name: call.state.now()}
    served = call.state.catalogue.stored[BUDGETS]
    await call.state.store.put(record.key, encoder(served, budget), expect=record.revision)


def _is_ready(pod: Tree) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions)


def _blocked(why: str, retry: int) -> ApiError:
    causes = [{"reason": "DisruptionBudget", "message": why}]
    return errors.too_many_requests("Cannot evict pod as it would violate the pod's disruption budget.", retry, causes)


async def _mark_disrupted(call: Call) -> None:
    live = call.state.store.latest(call.key)
    if live is None:
        return
    tree = live.tree()
    conditions = tree.setdefault("status", {}).setdefault("conditions", [])
    if any(c.get("type") == "DisruptionTarget" and c.get("status") == "True" for c in conditions):
        return
    conditions.append(
        {
            "type": "DisruptionTarget",
            "status": "True",
            "lastTransitionTime": call.state.now(),
            "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting",
        }
    )
    await call.state.store.put(call.key, encoder(call.served, tree), expect=live.revision)
