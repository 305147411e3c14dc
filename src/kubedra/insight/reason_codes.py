"""Every code that an answer of ``why`` can hold, with its meaning and what to do: stable, so that scripts can act.

The reference page docs/reference/reason-codes.md is made from these tables (tools/generate_reason_reference.py); a
test holds that no code is used that isn't here.
"""

from __future__ import annotations

from kubedra.allocation.reasons import REASON_CODES
from kubedra.allocation.waterfall import CODES as STEP_CODES

# What a person can do about the allocator's reasons; their meanings stand in ``allocation.reasons``.
_WHAT_TO_DO = {
    "claim-invalid": "Correct the claim: the text names the field.",
    "no-nodes": "Add a node, or find out why none can be seen.",
    "nothing-published": "Install or start the DRA driver of the devices.",
    "pool-incomplete": "Wait some seconds; if it lasts, look at the driver that publishes the pool.",
    "pool-invalid": "Have the driver corrected: the text says what contradicts what.",
    "class-matches-nothing": "Use another DeviceClass, or install the driver that the class is for.",
    "selector-matches-too-few": "Relax the selector to a value that exists, or add devices that match.",
    "selector-fails": "Guard the attribute that some devices lack: `has(…) && …` or `.?name.orValue(…)`.",
    "not-reachable": "Let the pod run on the nodes that have the devices (node selector, taints).",
    "feature-off": "Switch the named feature gate on, or ask without the feature.",
    "tainted": "Tolerate the taint in the request, or have it removed.",
    "too-small": "Ask for less capacity per device.",
    "in-use": "Wait until a device is released, or end a pod that the answer names.",
    "no-room": "Move or end the pod that the answer names, or ask for a smaller part of the card.",
    "constraint": "Drop the constraint, lower the count, or name an attribute that the driver publishes.",
    "too-few-on-one-node": "Lower the count, or use nodes with more devices: all must be on one node.",
    "not-together": "Ask for less, or split the claim over several pods.",
}

REASONS: dict[str, tuple[str, str]] = {
    **{code: (meaning, _WHAT_TO_DO[code]) for code, meaning in REASON_CODES.items()},
    "too-few-devices": (
        "fewer devices match than the request needs, whoever holds them",
        "Add such devices, or ask for fewer.",
    ),
    "not-visible": (
        "the user may not list nodes, slices or classes, so the answer ends with what the scheduler says",
        "Ask somebody with the rights to run the command, or for a dump.",
    ),
    "pod-gated": (
        "the pod is held back by spec.schedulingGates",
        "Whoever set the gate has to remove it; often that is a queue or quota controller.",
    ),
    "pod-deleting": ("the pod is being deleted", "Wait, or remove the finalizers that keep it."),
    "no-scheduler": (
        "no scheduler of the name in spec.schedulerName has looked at the pod",
        "Start that scheduler, or create the pod with the name of one that runs.",
    ),
    "unsupported-field": (
        "the pod uses a field that kubedra's own scheduler does not implement",
        "Leave the field out, or use another scheduler.",
    ),
    "template-missing": (
        "the ResourceClaimTemplate that the pod names does not exist",
        "Create it, or correct the name in the pod.",
    ),
    "claim-not-created": (
        "the claim that belongs to the pod has not been made from its template yet",
        "Wait a moment; if it lasts, see whether kube-controller-manager runs and what its events say.",
    ),
    "claim-reference-empty": (
        "an entry of spec.resourceClaims names neither a claim nor a template",
        "Name one of the two.",
    ),
    "claim-missing": ("the claim that the pod names does not exist", "Create it, or correct the name in the pod."),
    "claim-deleting": (
        "the claim is being deleted; new pods can't use it",
        "Wait until its last pod has ended, then create the claim again.",
    ),
    "claim-foreign": (
        "there is a claim of the right name, but it was made for another pod",
        "Delete that claim; a new one is made for this pod.",
    ),
    "claim-full": (
        "the claim has as many consumers as a claim can have (256)",
        "Make a second claim, or use a ResourceClaimTemplate so that every pod has its own.",
    ),
    "claim-being-allocated": ("the scheduler is writing an allocation for this claim right now", "Wait a moment."),
    "claim-unused": (
        "no pod uses the claim, and devices are only allocated for a pod",
        "Create a pod that names the claim.",
    ),
    "class-missing": ("the DeviceClass that a request names does not exist", "Use a class that exists."),
    "attempt-error": ("the scheduler's attempt ended in an error", "Correct what the text names."),
    "nodes-reject": (
        "no node takes the pod, whatever its devices are (cordoned, tainted, full, other labels)",
        "Change what keeps the pod from the nodes: the answer lists it node by node.",
    ),
    "no-place": ("the scheduler found no node, for the reason in its own words", "Act on the scheduler's text."),
    "scheduler-bypassed": (
        "the pod was created with spec.nodeName, so no scheduler allocated or reserved devices for it",
        "Create the pod without spec.nodeName and use a node selector.",
    ),
    "node-missing": ("the pod is bound to a node that does not exist", "Delete the pod; its owner makes a new one."),
    "node-not-ready": ("the pod's node is not ready", "Look at the node's kubelet."),
    "driver-not-registered": (
        "the kubelet of the pod's node does not know the DRA driver of its devices",
        "Start the driver on that node; the kubelet tries again by itself.",
    ),
    "driver-gone": (
        "the driver publishes nothing for the pod's node any more, so it may not be running there",
        "See whether the driver's pod runs on that node.",
    ),
    "prepare-failed": (
        "the driver could not prepare the devices on the node; its own words follow",
        "Correct what the driver names; the kubelet tries again by itself.",
    ),
    "container-waits": ("a container waits for something else than devices", "Act on the container's own reason."),
}

NODES: dict[str, str] = {
    "node-rejects": "The node can't take the pod whatever its devices are; the text says why.",
    "no-devices": "No DRA driver publishes devices for the node.",
    "pool-incomplete": "The pools of the node are incomplete or invalid for now.",
    "too-few-match": "Too few of the node's devices match class and selectors.",
    "feature-off": "The devices that match need a feature gate that is off.",
    "tainted": "The devices that match have taints that the request does not tolerate.",
    "too-small": "The devices that match can't serve the requested capacity.",
    "in-use": "The devices that match are held by other claims.",
    "no-room": "Counters or capacity of the devices that match are used up.",
    "constraint": "The free devices don't satisfy a constraint of the claim.",
    "not-together": "Each request could be served on the node, all of them together can't.",
    "would-fit": "The node would do, if a selector could be evaluated on all devices.",
}

REMEDIES: dict[str, str] = {
    "relax-selector": "A literal of a selector replaced by the nearest value that devices publish.",
    "correct-name": "An attribute or capacity replaced by a similar name that exists.",
    "guard-attribute": "A guard around an attribute that some devices lack.",
    "repair-selector": "A selector rewritten as `kubedra cel check` proposes.",
    "drop-selector": "A selector left out.",
    "drop-constraint": "A constraint left out.",
    "add-toleration": "A toleration for a device taint added to a request.",
    "lower-count": "A lower count; the largest that fits.",
    "lower-capacity": "A smaller share of a device; the largest that is left.",
    "free-device": "Pods to end, the fewest that were found.",
    "free-unused-claim": "A claim to delete that holds devices and is used by no pod.",
    "move-pod": "Pods to delete and create again: they fit elsewhere afterwards.",
    "tolerate-node": "A toleration for a node taint added to the pod.",
    "drop-node-selector": "The pod's node selector and affinity left out.",
    "uncordon-node": "A cordoned node that takes pods again.",
    "add-node": "One more node like one that is there.",
}

CANNOT_HELP: dict[str, str] = {
    "preemption": "A higher priority: pods are never preempted to free devices.",
    "freeing": "Ending other pods: it would not fit even if all devices were free.",
    "adding-nodes": "More nodes like those that are there: it would not fit on them either.",
}

STEPS: dict[str, str] = dict(STEP_CODES)

STATES: dict[str, str] = {
    "waits": "Something must change first; the exit code is 3.",
    "would-fit": "The scheduler would place the pod now; it has only not come to it yet.",
    "prepares": "The pod is on its node and being started.",
    "runs": "The pod runs; the claim has its devices.",
    "done": "The pod has ended.",
}
