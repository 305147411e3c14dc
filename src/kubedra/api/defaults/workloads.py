"""Defaults of the workload kinds: replicas, strategies, history, and the pod templates inside them.

Upstream counterpart: pkg/apis/apps/v1/defaults.go, pkg/apis/batch/v1/defaults.go, pkg/apis/core/v1/defaults.go.
"""

from __future__ import annotations

from typing import Any

from kubedra.api.defaults.cluster import default_volume_claim
from kubedra.api.defaults.pods import default_template, members

Tree = dict[str, Any]

MAX_INT32 = 2**31 - 1


def default_deployment(tree: Tree) -> None:
    """Fill in a Deployment: one replica, rolling by quarters, ten old versions, ten minutes to make progress."""
    spec = _spec(tree)
    _missing(spec, "replicas", 1)
    strategy = _object(spec, "strategy")
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        rolling = _object(strategy, "rollingUpdate")
        _missing(rolling, "maxUnavailable", "25%")
        _missing(rolling, "maxSurge", "25%")
    _missing(spec, "revisionHistoryLimit", 10)
    _missing(spec, "progressDeadlineSeconds", 600)
    default_template(_object(spec, "template"))


def default_replica_set(tree: Tree) -> None:
    """Fill in a ReplicaSet: one replica."""
    spec = _spec(tree)
    _missing(spec, "replicas", 1)
    default_template(_object(spec, "template"))


def default_replication_controller(tree: Tree) -> None:
    """Fill in a ReplicationController: selector and labels follow the template's labels."""
    spec = _spec(tree)
    template = spec.get("template")
    labels = ((template or {}).get("metadata") or {}).get("labels") or {}
    if labels:
        if not spec.get("selector"):
            spec["selector"] = dict(labels)
        metadata = _object(tree, "metadata")
        if not metadata.get("labels"):
            metadata["labels"] = dict(labels)
    _missing(spec, "replicas", 1)
    if isinstance(template, dict):
        default_template(template)


def default_stateful_set(tree: Tree) -> None:
    """Fill in a StatefulSet: ordered pods, rolling from the last, claims kept."""
    spec = _spec(tree)
    if not spec.get("podManagementPolicy"):
        spec["podManagementPolicy"] = "OrderedReady"
    strategy = _object(spec, "updateStrategy")
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
        # Only a strategy that was not named gets its details; a named one keeps what its author wrote.
        _missing(_object(strategy, "rollingUpdate"), "partition", 0)
    elif strategy["type"] == "RollingUpdate" and isinstance(strategy.get("rollingUpdate"), dict):
        _missing(strategy["rollingUpdate"], "partition", 0)
    policy = _object(spec, "persistentVolumeClaimRetentionPolicy")
    for name in ("whenDeleted", "whenScaled"):
        if not policy.get(name):
            policy[name] = "Retain"
    _missing(spec, "replicas", 1)
    _missing(spec, "revisionHistoryLimit", 10)
    default_template(_object(spec, "template"))
    for claim in members(spec, "volumeClaimTemplates"):
        claim["apiVersion"] = "v1"
        claim["kind"] = "PersistentVolumeClaim"
        default_volume_claim(claim)
        _missing(_object(claim, "status"), "phase", "Pending")


def default_daemon_set(tree: Tree) -> None:
    """Fill in a DaemonSet: rolling one node at a time."""
    spec = _spec(tree)
    strategy = _object(spec, "updateStrategy")
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        rolling = _object(strategy, "rollingUpdate")
        _missing(rolling, "maxUnavailable", 1)
        _missing(rolling, "maxSurge", 0)
    _missing(spec, "revisionHistoryLimit", 10)
    default_template(_object(spec, "template"))


def default_job(tree: Tree) -> None:
    """Fill in a Job: one completion, six retries."""
    spec = _spec(tree)
    _default_job_spec(spec)
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    metadata = _object(tree, "metadata")
    if labels and not metadata.get("labels"):
        metadata["labels"] = dict(labels)
    _missing(spec, "manualSelector", False)


def default_cron_job(tree: Tree) -> None:
    """Fill in a CronJob: runs may overlap, three good runs and one bad one are kept."""
    spec = _spec(tree)
    if not spec.get("concurrencyPolicy"):
        spec["concurrencyPolicy"] = "Allow"
    _missing(spec, "suspend", False)
    _missing(spec, "successfulJobsHistoryLimit", 3)
    _missing(spec, "failedJobsHistoryLimit", 1)
    default_template(_object(_object(_object(spec, "jobTemplate"), "spec"), "template"))


def _default_job_spec(spec: Tree) -> None:
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
        spec["parallelism"] = 1
    _missing(spec, "parallelism", 1)
    _missing(spec, "backoffLimit", MAX_INT32 if spec.get("backoffLimitPerIndex") is not None else 6)
    if not spec.get("completionMode"):
        spec["completionMode"] = "NonIndexed"
    _missing(spec, "suspend", False)
    failure = spec.get("podFailurePolicy")
    _missing(spec, "podReplacementPolicy", "Failed" if failure is not None else "TerminatingOrFailed")
    for rule in members(failure or {}, "rules"):
        for pattern in members(rule, "onPodConditions"):
            if not pattern.get("status"):
                pattern["status"] = "True"
    default_template(_object(spec, "template"))


def _spec(tree: Tree) -> Tree:
    return _object(tree, "spec")


def _object(tree: Tree, name: str) -> Tree:
    """Return a member that is an object, making an empty one where there is none."""
    value = tree.get(name)
    if isinstance(value, dict):
        return value
    made: Tree = {}
    if value is None:
        tree[name] = made
    return made


def _missing(tree: Tree, name: str, value: Any) -> None:
    if tree.get(name) is None:
        tree[name] = value
