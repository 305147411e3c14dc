"""What field ownership and patches cost per write; prints one JSON object of microseconds.

Run by hand: ``python benchmarks/patches.py``. The pod has what a real one has after the kubelet's first report.
"""

from __future__ import annotations

import json
import timeit
from typing import Any

from benchmarks.recording import emit
from kubedra.api import kinds, schema
from kubedra.server import patch

NOW = "2026-01-01T00:00:00Z"


def pod() -> dict[str, Any]:
    """A pod with two containers, running, written by three managers."""
    container = {
        "image": "registry.example.com/team/app:1.2.3",
        "imagePullPolicy": "IfNotPresent",
        "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "claims": [{"name": "gpu"}]},
        "env": [{"name": f"E{i}", "value": str(i)} for i in range(5)],
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    }
    spec = {
        "containers": [{"name": "a", **container}, {"name": "b", **container}],
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}],
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "tolerations": [{"key": "x", "operator": "Exists"}],
    }
    tree: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "default", "labels": {"app": "a", "team": "b"}},
        "spec": spec,
        "status": {"phase": "Pending"},
    }
    tree = patch.update_managed_fields(None, tree, kinds.POD, "kube-controller-manager", NOW)
    tree["metadata"]["uid"] = "u"
    tree = write(tree, {"status": status("Pending")}, "kubelet", "status")
    return write(tree, {"spec": {"nodeName": "n1"}}, "kube-scheduler", "")


def status(phase: str) -> dict[str, Any]:
    """What an agent reports."""
    types = ["Initialized", "Ready", "ContainersReady", "PodScheduled"]
    return {
        "phase": phase,
        "conditions": [{"type": t, "status": str(phase == "Running"), "lastTransitionTime": NOW} for t in types],
        "containerStatuses": [
            {"name": n, "ready": phase == "Running", "restartCount": 0, "state": {phase.lower(): {"startedAt": NOW}}}
            for n in ("a", "b")
        ],
        "podIP": "10.0.0.1",
    }


def write(tree: dict[str, Any], change: dict[str, Any], manager: str, subresource: str) -> dict[str, Any]:
    """A merge patch with its bookkeeping."""
    new = patch.merge_patch(tree, change)
    return patch.update_managed_fields(tree, new, kinds.POD, manager, NOW, subresource=subresource)


def main() -> None:
    """Measure and print."""
    live = pod()
    running = {"status": status("Running")}
    new = patch.merge_patch(live, running)
    entries = live["metadata"]["managedFields"]
    reread = json.loads(json.dumps(new))
    created = {k: v for k, v in live.items() if k != "status"}
    created["metadata"] = {k: v for k, v in live["metadata"].items() if k not in ("managedFields", "uid")}
    reservation = {"uid": "u1", "name": "p", "resource": "pods"}
    claim_config = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "status": {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "p-gpu"}]},
    }
    definition = schema.for_kind(kinds.POD)
    cases = {
        "update: pod status": lambda: patch.update_managed_fields(
            live, new, kinds.POD, "kubelet", NOW, subresource="status"
        ),
        "update: pod status, nothing shared with the old tree": lambda: patch.update_managed_fields(
            live, reread, kinds.POD, "kubelet", NOW, subresource="status"
        ),
        "update: nothing changed": lambda: patch.update_managed_fields(live, live, kinds.POD, "kubelet", NOW),
        "update: create a pod": lambda: patch.update_managed_fields(None, created, kinds.POD, "kubectl", NOW),
        "apply: claim names to pod status": lambda: patch.apply(
            live, claim_config, kinds.POD, "resource-claim", NOW, force=True, subresource="status"
        ),
        "merge patch: pod status": lambda: patch.merge_patch(live, running),
        "strategic merge: pod status": lambda: patch.strategic_merge(live, running, definition),
        "json patch: append a reservation": lambda: patch.json_patch(
            {"status": {"reservedFor": []}}, [{"op": "add", "path": "/status/reservedFor/-", "value": reservation}]
        ),
    }
    out: dict[str, float] = {}
    for name, run in cases.items():
        run()
        count = 2000
        out[name] = round(min(timeit.repeat(run, number=count, repeat=5)) / count * 1e6, 1)
    emit("patches", {"microseconds": out, "managers": len(entries)})


if __name__ == "__main__":
    main()
