"""Recorded scenarios in which we differ from kube-scheduler and kube-controller-manager 1.36.2 on purpose, and why.

Numbers are those of the notes in cluster-observed.md; D marks what it calls a defect.
"""

from __future__ import annotations

_TIMESTAMP = "note 2 (D): 1.36.2 tries to set a timestamp that can't be changed, such pods never run; ours do"
_VANISHED = "note 5 (D): upstream wakes nobody when a slice or a claim just vanishes; ours does, and the pod runs"
_OLDER_CLASS = "note 3 (D): when the newest class with a resource name goes, the next one takes over"
_BRIDGE = "report kubernetes#141290 (D): pods that got devices through the bridge are evicted like all others"
_EMPTY_EFFECT = "§5.2 QUIRK: a toleration without effect tolerates eviction too, as it does for scheduling"
_STALE_CLAIM = "note 5 (D): after its stale claim was deleted the pod is tried again"

EXCEPTIONS: dict[str, str] = {
    "A-class-newest-cleared": _OLDER_CLASS,
    "A-class-newest-deleted-touch-old": _OLDER_CLASS,
    "A-foreign-claim-annotated": _STALE_CLAIM,
    "A-foreign-claim-annotated-wake": _STALE_CLAIM,
    "B-allocation-replaced": "the refused value is shown with the API's names, upstream shows Go's",
    "B-nodename-direct-allocated-elsewhere": "note 13 (D): nothing is reserved on a node that the claim does not fit",
    "B-reserved-256": _TIMESTAMP + "; here the limit of 256 remains as the only complaint",
    "B-status-points-elsewhere": "note 12 (D): a status that names a foreign claim is repaired",
    "B-two-templates-first-late": "note 11 (D): the second claim does not wait for the first one's template",
    "C-cap-all-one-full": "note 16 (D), report C03: All does not shrink when one of the devices is full",
    "C-cap-negative": "note 15 (D): a negative capacity request is not allocated",
    "C-mig-tainted-first": "note 16 (D), report C11: counters of a tainted device are given back, so the pod fits",
    "C-prealloc-device-gone": _TIMESTAMP,
    "C-prealloc-no-finalizer": _TIMESTAMP,
    "C-preempt-cpu-with-device": "pods are not evicted for other pods; the message is upstream's, and says so after it",
    "C-two-claims-one-direct-allocated": _TIMESTAMP,
    "D-claim-freed-by-finalizer-strip": _VANISHED,
    "D-slice-deleted-invalid": _VANISHED,
    "E-bridge": _BRIDGE,
    "E-bridge-and-claim": _BRIDGE,
    "E-tolerated-empty-effect": _EMPTY_EFFECT,
    "E-tolerated-empty-effect-before": _EMPTY_EFFECT,
    "G-job-foreground": "the claim of a pod that is deleted as a dependent goes with the pod, not before it",
    "G-slice-of-node": "pods of a node that is gone are deleted at once, upstream waits for 40 s",
}
