from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kubedra.api import apps_v1, batch_v1, codec, coordination_v1, core_v1, kinds, policy_v1
from kubedra.base.clock import format_time
from kubedra.controllers import daemon_sets, deployments, disruption, jobs, node_lifecycle, replica_sets, stateful_sets
from kubedra.controllers import pods as podlib
from kubedra.controllers.actions import Action, Create, Delete, Patch
from kubedra.controllers.revisions import HASH_LABEL, revision_name

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TEMPLATE = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


def owned(kind: str, api_version: str, name: str = "w", uid: str = "w1") -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "name": name, "uid": uid, "controller": True}


def pod(name: str, owner: dict[str, Any] | None, *, ready: bool = True, **over: Any) -> core_v1.Pod:
    tree: dict[str, Any] = {
        "metadata": {
            "name": name,
            "namespace": "a",
            "uid": name,
            "labels": {"app": "x"} | over.pop("labels", {}),
            "creationTimestamp": "2025-12-31T00:00:00Z",
            **({"ownerReferences": [owner]} if owner else {}),
            **over.pop("metadata", {}),
        },
        "spec": {"nodeName": "n1", **over.pop("spec", {})},
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": str(ready), "lastTransitionTime": "2025-12-31T00:00:00Z"}],
            **over.pop("status", {}),
        },
    }
    return codec.from_tree(core_v1.Pod, tree)


def of_type(actions: list[Action], type_: type) -> list[Any]:
    return [a for a in actions if isinstance(a, type_)]


def status_of(actions: list[Action]) -> dict[str, Any]:
    found = [a.patch["status"] for a in of_type(actions, Patch) if a.subresource == "status"]
    return found[-1] if found else {}


# ---- replica sets ----


def replica_set(count: int, **over: Any) -> apps_v1.ReplicaSet:
    tree = {
        "metadata": {"name": "w", "namespace": "a", "uid": "w1", "generation": 2} | over.get("metadata", {}),
        "spec": {"replicas": count, "selector": {"matchLabels": {"app": "x"}}, "template": TEMPLATE},
        "status": over.get("status", {}),
    }
    return codec.from_tree(apps_v1.ReplicaSet, tree)


RS = owned("ReplicaSet", "apps/v1")


def test_missing_pods_are_made_and_counted() -> None:
    actions = replica_sets.decide_replica_set(replica_set(3), [pod("p1", RS)], NOW)
    made = of_type(actions, Create)
    assert len(made) == 2
    assert made[0].tree["metadata"]["generateName"] == "w-"
    assert made[0].tree["metadata"]["ownerReferences"][0]["uid"] == "w1"
    assert status_of(actions) == {
        "replicas": 1,
        "fullyLabeledReplicas": 1,
        "readyReplicas": 1,
        "availableReplicas": 1,
        "observedGeneration": 2,
    }


def test_the_least_useful_pods_go_first() -> None:
    ready, pending = (
        pod("ready", RS),
        pod("pending", RS, ready=False, spec={"nodeName": ""}, status={"phase": "Pending"}),
    )
    actions = replica_sets.decide_replica_set(replica_set(1), [ready, pending], NOW)
    assert [d.name for d in of_type(actions, Delete)] == ["pending"]


def test_orphans_are_adopted_and_strangers_left() -> None:
    orphan, stranger = pod("orphan", None), pod("other", owned("ReplicaSet", "apps/v1", "v", "v1"))
    actions = replica_sets.decide_replica_set(replica_set(1), [orphan, stranger], NOW)
    (adopt,) = [p for p in of_type(actions, Patch) if not p.subresource]
    assert (adopt.name, adopt.patch["metadata"]["ownerReferences"][0]["uid"]) == ("orphan", "w1")
    assert not of_type(actions, Create)


def test_a_set_that_is_as_it_should_be_costs_nothing() -> None:
    status = {
        "replicas": 1,
        "fullyLabeledReplicas": 1,
        "readyReplicas": 1,
        "availableReplicas": 1,
        "observedGeneration": 2,
    }
    assert replica_sets.decide_replica_set(replica_set(1, status=status), [pod("p", RS)], NOW) == []


# ---- deployments ----


def deployment(count: int, image: str = "i", **over: Any) -> apps_v1.Deployment:
    template = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "c", "image": image}]}}
    tree = {
        "metadata": {"name": "w", "namespace": "a", "uid": "d1", "generation": 1},
        "spec": {
            "replicas": count,
            "selector": {"matchLabels": {"app": "x"}},
            "template": template,
            "strategy": over.get(
                "strategy", {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
            ),
        },
    }
    return codec.from_tree(apps_v1.Deployment, tree)


class Rollout:
    """Carries a deployment's decisions out on plain trees; pods become available at once when told so."""

    def __init__(self) -> None:
        self.sets: dict[str, dict[str, Any]] = {}

    def step(self, wanted: apps_v1.Deployment, *, available: bool = True) -> list[Action]:
        found = [codec.from_tree(apps_v1.ReplicaSet, t) for t in self.sets.values()]
        actions = deployments.decide_deployment(wanted, found, format_time(NOW))
        for action in actions:
            if isinstance(action, Create):
                tree = action.tree
                tree["metadata"]["uid"] = tree["metadata"]["name"]
                self.sets[tree["metadata"]["name"]] = tree
            elif isinstance(action, Patch) and action.kind is kinds.REPLICA_SET and "spec" in action.patch:
                self.sets[action.name]["spec"]["replicas"] = action.patch["spec"]["replicas"]
            elif isinstance(action, Patch) and action.kind is kinds.REPLICA_SET:
                self.sets[action.name]["metadata"]["annotations"] |= action.patch["metadata"]["annotations"]
        for tree in self.sets.values():
            count = tree["spec"]["replicas"]
            have = tree.get("status", {}).get("availableReplicas", 0)
            tree["status"] = {"replicas": count, "availableReplicas": count if available else min(have, count)}
        return actions

    def counts(self) -> list[int]:
        return [t["spec"]["replicas"] for t in self.sets.values()]


def test_a_new_template_rolls_out_within_its_limits() -> None:
    rollout = Rollout()
    for _ in range(3):
        rollout.step(deployment(3))
    assert rollout.counts() == [3]
    seen = []
    for _ in range(12):
        rollout.step(deployment(3, "j"))
        seen.append(tuple(rollout.counts()))
        available = sum(t["status"]["availableReplicas"] for t in rollout.sets.values())
        assert available >= 3
        assert sum(rollout.counts()) <= 4
    assert seen[-1] == (0, 3)
    assert [t["metadata"]["annotations"][deployments.REVISION] for t in rollout.sets.values()] == ["1", "2"]


def test_a_rollout_whose_pods_never_come_up_stops_at_its_limits() -> None:
    rollout = Rollout()
    for _ in range(3):
        rollout.step(deployment(3))
    for _ in range(6):
        rollout.step(deployment(3, "broken"), available=False)
    assert rollout.counts() == [3, 1]


def test_recreate_waits_until_the_old_are_gone() -> None:
    rollout = Rollout()
    recreate = {"type": "Recreate"}
    for _ in range(2):
        rollout.step(deployment(2, strategy=recreate))
    rollout.step(deployment(2, "j", strategy=recreate))
    assert rollout.counts() == [2, 0]
    rollout.step(deployment(2, "j", strategy=recreate))
    assert rollout.counts() == [0, 0]
    rollout.step(deployment(2, "j", strategy=recreate))
    assert rollout.counts() == [0, 2]


def test_going_back_to_an_old_template_reuses_its_set() -> None:
    rollout = Rollout()
    for image in ("i", "j", "i"):
        for _ in range(12):
            rollout.step(deployment(2, image))
    assert rollout.counts() == [2, 0]
    assert [t["metadata"]["annotations"][deployments.REVISION] for t in rollout.sets.values()] == ["3", "2"]


# ---- stateful sets ----


def stateful_set(count: int, **spec: Any) -> apps_v1.StatefulSet:
    tree = {
        "metadata": {"name": "w", "namespace": "a", "uid": "w1", "generation": 1},
        "spec": {"replicas": count, "selector": {"matchLabels": {"app": "x"}}, "template": TEMPLATE, **spec},
    }
    return codec.from_tree(apps_v1.StatefulSet, tree)


STS = owned("StatefulSet", "apps/v1")


def sts_pod(n: int, *, ready: bool = True, revision: str | None = None) -> core_v1.Pod:
    current = revision_name(stateful_set(1).metadata, stateful_set(1).spec.template)
    return pod(f"w-{n}", STS, ready=ready, labels={HASH_LABEL: revision or current})


def decide_sts(s: apps_v1.StatefulSet, pods: list[core_v1.Pod]) -> tuple[list[str], list[str]]:
    actions = stateful_sets.decide_stateful_set(s, pods, [], set(), NOW)
    made = [c.tree["metadata"]["name"] for c in of_type(actions, Create) if c.kind is kinds.POD]
    return made, [d.name for d in of_type(actions, Delete) if d.kind is kinds.POD]


def test_ordered_pods_come_one_after_the_other_and_go_in_reverse() -> None:
    assert decide_sts(stateful_set(3), []) == (["w-0"], [])
    assert decide_sts(stateful_set(3), [sts_pod(0, ready=False)]) == ([], [])
    assert decide_sts(stateful_set(3), [sts_pod(0)]) == (["w-1"], [])
    assert decide_sts(stateful_set(1), [sts_pod(0), sts_pod(1), sts_pod(2)]) == ([], ["w-2"])


def test_parallel_pods_come_at_once() -> None:
    assert decide_sts(stateful_set(3, podManagementPolicy="Parallel"), []) == (["w-0", "w-1", "w-2"], [])


def test_updates_go_from_the_highest_down_to_the_partition() -> None:
    old = [sts_pod(n, revision="w-old") for n in range(3)]
    rolling = {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}}
    assert decide_sts(stateful_set(3), old) == ([], ["w-2"])
    assert decide_sts(stateful_set(3, **rolling), [*old[:2], sts_pod(2)]) == ([], [])


# ---- daemon sets ----


def node(name: str, taints: list[dict[str, str]] | None = None, **meta: Any) -> core_v1.Node:
    return codec.from_tree(
        core_v1.Node, {"metadata": {"name": name, "uid": name, **meta}, "spec": {"taints": taints or []}}
    )


def test_each_node_that_takes_it_gets_one_pod() -> None:
    tree = {
        "metadata": {"name": "w", "namespace": "a", "uid": "w1"},
        "spec": {"selector": {"matchLabels": {"app": "x"}}, "template": TEMPLATE},
    }
    daemon_set = codec.from_tree(apps_v1.DaemonSet, tree)
    owner = owned("DaemonSet", "apps/v1")
    revision = revision_name(daemon_set.metadata, daemon_set.spec.template)
    nodes = [node("n1"), node("n2"), node("n3", [{"key": "gpu", "effect": "NoSchedule"}])]
    running = [pod("p1", owner, labels={HASH_LABEL: revision}), pod("p9", owner, spec={"nodeName": "gone"})]
    actions = daemon_sets.decide_daemon_set(daemon_set, nodes, running, [], NOW)
    (made,) = [c for c in of_type(actions, Create) if c.kind is kinds.POD]
    terms = made.tree["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert terms["nodeSelectorTerms"][0]["matchFields"][0]["values"] == ["n2"]
    assert [d.name for d in of_type(actions, Delete)] == ["p9"]
    assert status_of(actions)["desiredNumberScheduled"] == 2


# ---- jobs ----


def job(status: dict[str, Any] | None = None, **spec: Any) -> batch_v1.Job:
    tree = {
        "metadata": {"name": "w", "namespace": "a", "uid": "w1"},
        "spec": {"completions": 1, "parallelism": 1, "template": TEMPLATE, **spec},
        "status": status or {},
    }
    return codec.from_tree(batch_v1.Job, tree)


JOB = owned("Job", "batch/v1")


def job_pod(name: str, phase: str, *, tracked: bool = True) -> core_v1.Pod:
    return pod(
        name,
        JOB,
        metadata={"finalizers": [jobs.TRACKING]} if tracked else {},
        status={"phase": phase, "conditions": []},
    )


def test_a_job_makes_its_pod_with_the_tracking_finalizer() -> None:
    (made,) = of_type(jobs.decide_job(job(), [], NOW).actions, Create)
    assert made.tree["metadata"]["finalizers"] == [jobs.TRACKING]


def test_an_end_is_counted_in_three_steps_and_never_twice() -> None:
    done = job_pod("p1", "Succeeded")
    first = jobs.decide_job(job(), [done], NOW).actions
    assert status_of(first)["uncountedTerminatedPods"] == {"succeeded": ["p1"], "failed": None}
    assert "succeeded" not in status_of(first)
    waiting = {"uncountedTerminatedPods": {"succeeded": ["p1"]}, "startTime": format_time(NOW)}
    second = jobs.decide_job(job(waiting), [done], NOW).actions
    assert [p.patch["metadata"]["finalizers"] for p in of_type(second, Patch) if not p.subresource] == [None]
    third = jobs.decide_job(job(waiting), [job_pod("p1", "Succeeded", tracked=False)], NOW).actions
    status = status_of(third)
    assert status["succeeded"] == 1
    assert [c["type"] for c in status["conditions"]] == ["Complete"]
    assert status["completionTime"] == format_time(NOW)
    assert not of_type(third, Create)


def test_a_job_gives_up_after_its_backoff_limit() -> None:
    status = {"failed": 1, "startTime": format_time(NOW)}
    actions = jobs.decide_job(job(status, backoffLimit=0), [], NOW).actions
    (condition,) = status_of(actions)["conditions"]
    assert (condition["type"], condition["reason"]) == ("Failed", "BackoffLimitExceeded")


DISRUPTED = [{"type": "DisruptionTarget", "status": "True"}]


@pytest.mark.parametrize(
    ("rule", "failed", "ended"),
    [
        ({"action": "Ignore", "onPodConditions": DISRUPTED}, False, False),
        ({"action": "Count", "onPodConditions": DISRUPTED}, True, False),
        ({"action": "FailJob", "onPodConditions": DISRUPTED}, True, True),
        ({"action": "Ignore", "onExitCodes": {"operator": "In", "values": [3]}}, False, False),
        ({"action": "Ignore", "onExitCodes": {"operator": "NotIn", "values": [3]}}, True, False),
    ],
)
def test_the_failure_policy_decides_what_a_failure_means(rule: dict[str, Any], failed: bool, ended: bool) -> None:
    status = {
        "phase": "Failed",
        "conditions": DISRUPTED,
        "containerStatuses": [{"name": "c", "state": {"terminated": {"exitCode": 3}}}],
    }
    lost = pod("p1", JOB, metadata={"finalizers": [jobs.TRACKING]}, status=status)
    with_policy = job({"startTime": format_time(NOW)}, podFailurePolicy={"rules": [rule]})
    actions = jobs.decide_job(with_policy, [lost], NOW).actions
    uncounted = status_of(actions).get("uncountedTerminatedPods", {})
    assert (uncounted.get("failed") == ["p1"]) is failed
    assert bool(of_type(actions, Create)) is not ended
    assert any(not a.subresource for a in of_type(actions, Patch)) is not failed


def test_a_job_that_its_policy_ended_stays_ended_when_the_pod_is_counted() -> None:
    target = {"type": "FailureTarget", "status": "True", "reason": "PodFailurePolicy", "message": "m"}
    decided = job({"startTime": format_time(NOW), "failed": 1, "conditions": [target]})
    actions = jobs.decide_job(decided, [], NOW).actions
    assert not of_type(actions, Create)
    assert [c["type"] for c in status_of(actions)["conditions"]] == ["FailureTarget", "Failed"]


def test_a_job_with_a_failure_policy_waits_until_its_pod_has_failed() -> None:
    rules = {"rules": [{"action": "Ignore", "onPodConditions": DISRUPTED}]}
    leaving = pod("p1", JOB, metadata={"finalizers": [jobs.TRACKING], "deletionTimestamp": format_time(NOW)})
    status = {"startTime": format_time(NOW)}
    assert not of_type(jobs.decide_job(job(status, podFailurePolicy=rules), [leaving], NOW).actions, Create)
    assert of_type(jobs.decide_job(job(status), [leaving], NOW).actions, Create)


def test_indexed_jobs_fill_the_gaps() -> None:
    status = {"completedIndexes": "0,2", "succeeded": 2, "startTime": format_time(NOW)}
    actions = jobs.decide_job(job(status, completions=4, parallelism=4, completionMode="Indexed"), [], NOW).actions
    assert [c.tree["metadata"]["annotations"][jobs.INDEX] for c in of_type(actions, Create)] == ["1", "3"]


def test_a_finished_job_goes_when_its_time_is_over() -> None:
    condition = {"type": "Complete", "status": "True", "lastTransitionTime": format_time(NOW)}
    finished = job({"conditions": [condition]}, ttlSecondsAfterFinished=10)
    assert jobs.decide_job(finished, [], NOW).again == 10
    assert len(of_type(jobs.decide_job(finished, [], NOW + timedelta(seconds=10)).actions, Delete)) == 1


# ---- nodes ----


def lease(age: float) -> coordination_v1.Lease:
    renewed = format_time(NOW - timedelta(seconds=age))
    return codec.from_tree(
        coordination_v1.Lease, {"metadata": {"name": "n1"}, "spec": {"renewTime": renewed, "leaseDurationSeconds": 40}}
    )


def test_a_silent_node_is_marked_and_tainted() -> None:
    tree = {"metadata": {"name": "n1", "uid": "n1"}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    decision = node_lifecycle.decide_node(codec.from_tree(core_v1.Node, tree), lease(41), NOW)
    status, taints = of_type(decision.actions, Patch)
    assert status.patch["status"]["conditions"][0]["status"] == "Unknown"
    assert {(t["key"], t["effect"]) for t in taints.patch["spec"]["taints"]} == {
        (node_lifecycle.UNREACHABLE, "NoSchedule"),
        (node_lifecycle.UNREACHABLE, "NoExecute"),
    }


def test_controllers_that_have_just_started_give_every_node_its_time() -> None:
    tree = {"metadata": {"name": "n1", "uid": "n1"}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    ready = codec.from_tree(core_v1.Node, tree)
    started = NOW - timedelta(seconds=3)
    decision = node_lifecycle.decide_node(ready, lease(3600), NOW, since=started)
    assert decision.actions == [] and decision.again == pytest.approx(37.5)
    later = node_lifecycle.decide_node(ready, lease(3640), NOW + timedelta(seconds=40), since=started)
    assert of_type(later.actions, Patch)


def test_a_status_that_comes_before_the_lease_shows_life_too() -> None:
    ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": format_time(NOW - timedelta(seconds=1))}
    tree = {
        "metadata": {"name": "n1", "uid": "n1"},
        "spec": {"taints": [{"key": node_lifecycle.UNREACHABLE, "effect": "NoExecute"}]},
        "status": {"conditions": [ready]},
    }
    decision = node_lifecycle.decide_node(codec.from_tree(core_v1.Node, tree), lease(100), NOW)
    (taints,) = of_type(decision.actions, Patch)
    assert taints.patch["spec"]["taints"] is None


def test_a_node_that_is_back_loses_the_taints() -> None:
    tree = {
        "metadata": {"name": "n1", "uid": "n1"},
        "spec": {
            "taints": [
                {"key": node_lifecycle.UNREACHABLE, "effect": "NoExecute"},
                {"key": "k", "effect": "NoSchedule"},
            ]
        },
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }
    decision = node_lifecycle.decide_node(codec.from_tree(core_v1.Node, tree), lease(1), NOW)
    (taints,) = of_type(decision.actions, Patch)
    assert taints.patch["spec"]["taints"] == [{"key": "k", "effect": "NoSchedule"}]


def test_a_node_without_a_lease_is_left_as_it_is() -> None:
    assert node_lifecycle.decide_node(node("n1"), None, NOW) == node_lifecycle.NodeDecision([])


@pytest.mark.parametrize(
    ("tolerations", "seconds"),
    [
        ([], 0),
        ([{"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30}], 30),
        ([{"operator": "Exists"}], None),
    ],
)
def test_pods_leave_when_their_toleration_ends(tolerations: list[dict[str, Any]], seconds: int | None) -> None:
    taint = core_v1.Taint(key="k", effect="NoExecute", time_added=format_time(NOW))
    due = node_lifecycle.eviction_time(pod("p", None, spec={"tolerations": tolerations}), [taint], NOW)
    assert due == (None if seconds is None else NOW + timedelta(seconds=seconds))


# ---- budgets ----


def test_a_budget_says_how_many_may_go() -> None:
    tree = {
        "metadata": {"name": "b", "namespace": "a", "uid": "b1", "generation": 1},
        "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "x"}}},
    }
    budget = codec.from_tree(policy_v1.PodDisruptionBudget, tree)
    pods = [pod("p1", None), pod("p2", None), pod("p3", None), pod("p4", None, ready=False)]
    status = status_of(disruption.decide_budget(budget, pods, None, NOW))
    assert (status["currentHealthy"], status["desiredHealthy"], status["disruptionsAllowed"]) == (3, 2, 1)


def test_a_template_hash_ignores_its_own_label() -> None:
    template = codec.from_tree(core_v1.PodTemplateSpec, TEMPLATE)
    labelled = codec.from_tree(
        core_v1.PodTemplateSpec, TEMPLATE | {"metadata": {"labels": {"app": "x", "pod-template-hash": "h"}}}
    )
    assert podlib.template_hash(template) == podlib.template_hash(labelled)
