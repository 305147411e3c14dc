"""Jobs: pods that run to an end, counted exactly once. Counterpart: ``pkg/controller/job``.

A pod of a job carries a finalizer until its end stands in the job's status, so that no end is lost or counted twice,
whoever deletes the pod and whenever this process dies.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from kubedra.api import batch_v1, codec, kinds
from kubedra.base.clock import format_time, parse_time
from kubedra.controllers import pods as podlib
from kubedra.controllers.actions import Action, Delete, Patch, Tell
from kubedra.controllers.pods import Pod
from kubedra.controllers.replica_sets import carry_out_creating
from kubedra.controllers.shell import Context, Controller
from kubedra.controllers.stateful_sets import owner_keys

TRACKING = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"

Job = batch_v1.Job


@dataclass(frozen=True)
class JobDecision:
    """What to do now, and in how many seconds to look again."""

    actions: list[Action]
    again: float | None = None


def finished(job: Job) -> str:
    """``Complete``, ``Failed`` or nothing."""
    for c in job.status.conditions:
        if c.type in ("Complete", "Failed") and c.status == "True":
            return c.type
    return ""


def decide_job(job: Job, candidates: Iterable[Pod], now: datetime) -> JobDecision:
    """Pods to make, give up and count, and the status."""
    meta = job.metadata
    mine = [p for p in candidates if (o := podlib.controller_of(p.metadata)) is not None and o.uid == meta.uid]
    if meta.deletion_timestamp:
        alive = sum(podlib.is_active(p) for p in mine)
        said = podlib.status_patch(kinds.JOB, meta, job.status, {"active": alive or None})
        return JobDecision([*(_untrack(p) for p in mine if TRACKING in p.metadata.finalizers), *said])
    if finished(job):
        return _after_the_end(job, mine, now)
    uncounted = job.status.uncounted_terminated_pods
    waiting = {
        "succeeded": set(uncounted.succeeded if uncounted is not None else ()),
        "failed": set(uncounted.failed if uncounted is not None else ()),
    }
    tracked = {p.metadata.uid for p in mine if TRACKING in p.metadata.finalizers}
    # Step 3 of counting: the finalizer is off, so the end can move from the list to the number.
    succeeded = (job.status.succeeded or 0) + len(waiting["succeeded"] - tracked)
    failed = (job.status.failed or 0) + len(waiting["failed"] - tracked)
    still = {k: v & tracked for k, v in waiting.items()}
    # Step 2: ends that stand in the status lose the finalizer.
    release = [p for p in mine if p.metadata.uid in still["succeeded"] | still["failed"]]
    # Step 1: new ends are written into the status.
    ignored: list[Pod] = []
    failing: Pod | None = None
    indexed = job.spec.completion_mode == "Indexed"
    done_indexes = _parse_indexes(job.status.completed_indexes or "")
    for pod in mine:
        if pod.metadata.uid not in tracked or pod.metadata.uid in still["succeeded"] | still["failed"]:
            continue
        if pod.status.phase == "Succeeded":
            still["succeeded"].add(pod.metadata.uid)
            if indexed and (index := _index(pod)) is not None:
                done_indexes.add(index)
        elif pod.status.phase == "Failed" or (pod.metadata.deletion_timestamp and not pod.spec.node_name):
            action = failure_action(job, pod)
            if action == "Ignore":
                ignored.append(pod)
            else:
                still["failed"].add(pod.metadata.uid)
                failing = failing or (pod if action == "FailJob" else None)
    total_succeeded = succeeded + len(still["succeeded"])
    total_failed = failed + len(still["failed"])
    active = [p for p in mine if podlib.is_active(p)]
    conditions: list[dict[str, Any]] = [codec.to_tree(c) for c in job.status.conditions]
    actions: list[Action] = [_untrack(p) for p in [*release, *ignored]]
    stamp = format_time(now)
    end = _end(job, total_succeeded, total_failed, len(active), now)
    decided = next((c for c in job.status.conditions if c.type == "FailureTarget" and c.status == "True"), None)
    if decided is not None:
        end = ("Failed", decided.reason, decided.message)
    elif failing is not None:
        name = f"{failing.metadata.namespace}/{failing.metadata.name}"
        end = ("Failed", "PodFailurePolicy", f"Pod {name} failed, and the pod failure policy ends the job for it")
        # The verdict is written before the pod is counted and let go: nothing would tell of it afterwards.
        conditions = podlib.set_condition(conditions, "FailureTarget", "True", end[1], end[2], stamp)
    again = None
    completion: str | None = None
    if end is not None:
        type_, reason, message = end
        actions += [Delete(kinds.POD, p.metadata.name, meta.namespace, uid=p.metadata.uid) for p in active]
        if not any(still.values()) and not active:
            conditions = podlib.set_condition(conditions, type_, "True", reason, message, stamp)
            completion = stamp if type_ == "Complete" else None
    elif job.spec.suspend:
        actions += [Delete(kinds.POD, p.metadata.name, meta.namespace, uid=p.metadata.uid) for p in active]
        conditions = podlib.set_condition(conditions, "Suspended", "True", "JobSuspended", "Job suspended", stamp)
    else:
        if any(c.get("type") == "Suspended" and c.get("status") == "True" for c in conditions):
            conditions = podlib.set_condition(conditions, "Suspended", "False", "JobResumed", "Job resumed", stamp)
        wait = _backoff(mine, total_failed, now)
        # Pods that are on their way out count as there until they have failed, where the job wants it so.
        patient = job.spec.pod_failure_policy is not None or job.spec.pod_replacement_policy == "Failed"
        leaving = [p for p in mine if _leaving(p)] if patient else []
        if wait > 0:
            again = wait
        else:
            actions += _missing(job, [*active, *leaving], total_succeeded, done_indexes)
        actions += _surplus(job, active, total_succeeded)
        if job.spec.active_deadline_seconds is not None and job.status.start_time:
            left = parse_time(job.status.start_time) + timedelta(seconds=job.spec.active_deadline_seconds) - now
            again = min(again or left.total_seconds(), max(left.total_seconds(), 0.01))
    status: dict[str, Any] = {
        "active": len(active) or None,
        "ready": sum(podlib.is_ready(p) for p in active),
        "succeeded": succeeded or None,
        "failed": failed or None,
        "conditions": conditions,
    }
    if still != waiting:
        status["uncountedTerminatedPods"] = {k: sorted(v) or None for k, v in still.items()}
    if indexed:
        status["completedIndexes"] = _format_indexes(done_indexes) or None
    if not job.status.start_time and not job.spec.suspend:
        status["startTime"] = stamp
    if completion:
        status["completionTime"] = completion
    if not conditions:
        del status["conditions"]
    # 0 is a value of `ready`, unlike of the other numbers: -1 stands for "never said".
    current = codec.to_tree(job.status) | {"ready": -1 if job.status.ready is None else job.status.ready}
    patches = podlib.status_patch(kinds.JOB, meta, current, status)
    if completion:
        actions.append(Tell(job, kinds.JOB, "Normal", "Completed", "Job completed"))
    return JobDecision([*actions, *patches], again)


def _end(job: Job, succeeded: int, failed: int, active: int, now: datetime) -> tuple[str, str, str] | None:
    spec = job.spec
    limit = 6 if spec.backoff_limit is None else spec.backoff_limit
    if failed > limit:
        return "Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit"
    start, deadline = job.status.start_time, spec.active_deadline_seconds
    if deadline is not None and start and now >= parse_time(start) + timedelta(seconds=deadline):
        return "Failed", "DeadlineExceeded", "Job was active longer than specified deadline"
    if spec.completions is None:
        complete = succeeded > 0 and active == 0
    else:
        complete = succeeded >= spec.completions
    return ("Complete", "CompletionsReached", "Reached expected number of succeeded pods") if complete else None


def failure_action(job: Job, pod: Pod) -> str:
    """What the job's pod failure policy says of a failed pod: FailJob, Ignore, FailIndex, or Count."""
    policy = job.spec.pod_failure_policy
    for rule in policy.rules if policy is not None else ():
        codes = rule.on_exit_codes
        if codes is not None:
            for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
                ended = status.state.terminated if status.state is not None else None
                if ended is None or not ended.exit_code or codes.container_name not in ("", status.name):
                    continue
                if (ended.exit_code in codes.values) == (codes.operator == "In"):
                    return rule.action
        for pattern in rule.on_pod_conditions:
            found = podlib.condition(pod, pattern.type)
            if found is not None and found.status == pattern.status:
                return rule.action
    return "Count"


def _leaving(pod: Pod) -> bool:
    return bool(pod.metadata.deletion_timestamp) and pod.status.phase not in ("Succeeded", "Failed")


def _backoff(mine: Sequence[Pod], failed: int, now: datetime) -> float:
    """Seconds until another pod may be made after failures: 10 s doubled each time, at most 10 minutes."""
    gone = [p for p in mine if p.status.phase == "Failed"]
    ends = [end for p in gone if (end := _ended_at(p)) is not None]
    if not ends:
        return 0.0
    delay = min(10.0 * (1 << min(max(failed - 1, 0), 10)), 600.0)
    return (max(ends) + timedelta(seconds=delay) - now).total_seconds()


def _ended_at(pod: Pod) -> datetime | None:
    """When a pod's last container ended, or else when its last condition changed."""
    times = [
        s.state.terminated.finished_at
        for s in pod.status.container_statuses
        if s.state is not None and s.state.terminated is not None and s.state.terminated.finished_at
    ]
    times = times or [c.last_transition_time for c in pod.status.conditions if c.last_transition_time]
    return max(map(parse_time, times), default=None)


def _missing(job: Job, active: Sequence[Pod], succeeded: int, done: set[int]) -> list[Action]:
    parallelism = 1 if job.spec.parallelism is None else job.spec.parallelism
    completions = job.spec.completions
    if completions is None:
        wanted = parallelism if succeeded == 0 else len(active)
    else:
        wanted = min(parallelism, completions - succeeded)
    count = max(wanted - len(active), 0)
    if job.spec.completion_mode != "Indexed" or completions is None:
        return [podlib.create_pod(_pod(job, None)) for _ in range(count)]
    busy = {_index(p) for p in active}
    free = [i for i in range(completions) if i not in done and i not in busy]
    return [podlib.create_pod(_pod(job, i)) for i in free[:count]]


def _surplus(job: Job, active: Sequence[Pod], succeeded: int) -> list[Action]:
    parallelism = 1 if job.spec.parallelism is None else job.spec.parallelism
    wanted = parallelism if job.spec.completions is None else min(parallelism, job.spec.completions - succeeded)
    spare = max(len(active) - max(wanted, 0), 0)
    return [
        Delete(kinds.POD, p.metadata.name, p.metadata.namespace, uid=p.metadata.uid)
        for p in podlib.first_to_go(active)[:spare]
    ]


def _pod(job: Job, index: int | None) -> dict[str, Any]:
    tree = podlib.pod_tree(kinds.JOB, job.metadata, job.spec.template)
    tree["metadata"].setdefault("finalizers", []).append(TRACKING)
    if index is not None:
        tree["metadata"]["generateName"] = f"{job.metadata.name}-{index}-"
        tree["metadata"]["annotations"][INDEX] = str(index)
        tree["metadata"]["labels"][INDEX] = str(index)
        tree["spec"]["hostname"] = f"{job.metadata.name}-{index}"
        for container in [*tree["spec"].get("containers", ()), *tree["spec"].get("initContainers", ())]:
            container.setdefault("env", []).append({"name": "JOB_COMPLETION_INDEX", "value": str(index)})
    return tree


def _index(pod: Pod) -> int | None:
    text = pod.metadata.annotations.get(INDEX, "")
    return int(text) if text.isdigit() else None


def _parse_indexes(text: str) -> set[int]:
    out: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        out.update(range(int(first), int(last or first) + 1))
    return out


def _format_indexes(indexes: set[int]) -> str:
    ranges: list[list[int]] = []
    for i in sorted(indexes):
        if ranges and ranges[-1][1] == i - 1:
            ranges[-1][1] = i
        else:
            ranges.append([i, i])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in ranges)


def _untrack(pod: Pod) -> Patch:
    rest = [f for f in pod.metadata.finalizers if f != TRACKING]
    patch = {"metadata": {"uid": pod.metadata.uid, "finalizers": rest or None}}
    return Patch(kinds.POD, pod.metadata.name, pod.metadata.namespace, patch)


def _after_the_end(job: Job, mine: Sequence[Pod], now: datetime) -> JobDecision:
    actions: list[Action] = [_untrack(p) for p in mine if TRACKING in p.metadata.finalizers]
    ttl = job.spec.ttl_seconds_after_finished
    ends = [
        c.last_transition_time for c in job.status.conditions if c.type in ("Complete", "Failed") and c.status == "True"
    ]
    if ttl is None or not ends or not ends[0]:
        return JobDecision(actions)
    left = (parse_time(ends[0]) + timedelta(seconds=ttl) - now).total_seconds()
    if left > 0:
        return JobDecision(actions, left)
    meta = job.metadata
    gone = Delete(kinds.JOB, meta.name, meta.namespace, uid=meta.uid, propagation_policy="Foreground")
    return JobDecision([*actions, gone])


class JobController(Controller):
    """Keys are (namespace, name)."""

    name = "job-controller"

    def setup(self, context: Context) -> None:
        """Watch jobs and their pods."""
        self._context = context
        self._jobs = context.watch(kinds.JOB, lambda j: [(j.metadata.namespace, j.metadata.name)])
        self._pods = context.watch(kinds.POD, lambda p: owner_keys(p, "Job"))

    async def sync(self, key: tuple[str, str]) -> float | None:
        """Take a job one step on."""
        job = self._jobs.get(*key)
        if job is None:
            await self._context.carry_out(self._orphans(*key))
            return None
        decision = decide_job(job, self._pods.list(key[0]), self._context.clock.now())
        await carry_out_creating(self._context, job, kinds.JOB, decision.actions)
        return decision.again

    def _orphans(self, namespace: str, name: str) -> list[Action]:
        """Pods of a job that is gone keep no finalizer of ours."""
        return [
            _untrack(p)
            for p in self._pods.list(namespace)
            if (namespace, name) in owner_keys(p, "Job") and TRACKING in p.metadata.finalizers
        ]
