"""Workloads: selector and template fit each other, strategies are complete, what is fixed stays."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from kubedra.api import kinds
from kubedra.api.defaults import apply_defaults
from tests.unit.validation.cases import create, named, update

NOW = "2026-01-01T00:00:00Z"
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
SELECTOR = {"matchLabels": {"a": "b"}}


def workload(kind: kinds.Kind[Any], **spec: Any) -> dict[str, Any]:
    tree = named(kind.kind, spec=copy.deepcopy({"selector": SELECTOR, "template": TEMPLATE, **spec}))
    return apply_defaults(kind.group, kind.version, kind.kind, tree, now=NOW)


SETS = [kinds.DEPLOYMENT, kinds.REPLICA_SET, kinds.STATEFUL_SET, kinds.DAEMON_SET]


@pytest.mark.parametrize("kind", SETS, ids=lambda kind: kind.kind)
def test_selector_and_template(kind: kinds.Kind[Any]) -> None:
    assert create(kind, workload(kind)) == set()
    assert create(kind, workload(kind, selector={"matchLabels": {"a": "c"}})) == {
        "Invalid spec.template.metadata.labels"
    }
    assert create(kind, workload(kind, selector=None)) == {
        "Required spec.selector",
        "Invalid spec.template.metadata.labels",
    }
    assert create(kind, workload(kind, selector={})) == {"Invalid spec.selector"}
    never = {**TEMPLATE, "spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}
    assert create(kind, workload(kind, template=never)) == {"NotSupported spec.template.spec.restartPolicy"}


@pytest.mark.parametrize("kind", SETS, ids=lambda kind: kind.kind)
def test_selector_is_immutable(kind: kinds.Kind[Any]) -> None:
    more = {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "a", "operator": "Exists"}]}
    fault = "Forbidden spec" if kind is kinds.STATEFUL_SET else "Invalid spec.selector"
    assert update(kind, workload(kind, selector=more), workload(kind)) == {fault}
    assert update(kind, workload(kind, minReadySeconds=3), workload(kind)) == set()


@pytest.mark.parametrize(
    ("spec", "faults"),
    [
        ({"replicas": -1}, {"Invalid spec.replicas"}),
        ({"strategy": {"type": "Other"}}, {"NotSupported spec.strategy.type"}),
        ({"strategy": {"type": "Recreate", "rollingUpdate": {}}}, {"Forbidden spec.strategy.rollingUpdate"}),
        ({"strategy": {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 0}}}, {
            "Invalid spec.strategy.rollingUpdate.maxUnavailable",
        }),
        ({"strategy": {"rollingUpdate": {"maxSurge": "x"}}}, {"Invalid spec.strategy.rollingUpdate.maxSurge"}),
        ({"progressDeadlineSeconds": 5, "minReadySeconds": 5}, {"Invalid spec.progressDeadlineSeconds"}),
    ],
)  # fmt: skip
def test_deployments(spec: dict[str, Any], faults: set[str]) -> None:
    assert create(kinds.DEPLOYMENT, workload(kinds.DEPLOYMENT, **spec)) == faults


def test_daemon_sets_roll_one_way() -> None:
    rolling = {"updateStrategy": {"rollingUpdate": {"maxUnavailable": 1, "maxSurge": 1}}}
    assert create(kinds.DAEMON_SET, workload(kinds.DAEMON_SET, **rolling)) == {
        "Invalid spec.updateStrategy.rollingUpdate.maxSurge"
    }
    rolling = {"updateStrategy": {"rollingUpdate": {"maxUnavailable": 0}}}
    assert create(kinds.DAEMON_SET, workload(kinds.DAEMON_SET, **rolling)) == {
        "Required spec.updateStrategy.rollingUpdate.maxUnavailable"
    }


def test_stateful_sets_keep_their_service() -> None:
    old, new = workload(kinds.STATEFUL_SET, serviceName="a"), workload(kinds.STATEFUL_SET, serviceName="b")
    assert update(kinds.STATEFUL_SET, new, old) == {"Forbidden spec"}


def test_stateful_sets_mount_what_their_claims_become() -> None:
    template = copy.deepcopy(TEMPLATE)
    template["spec"]["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]  # type: ignore[index]
    claims = [{"metadata": {"name": "data"}, "spec": {}}]
    tree = workload(kinds.STATEFUL_SET, template=template, volumeClaimTemplates=claims)
    assert create(kinds.STATEFUL_SET, tree) == set()
    tree["spec"]["volumeClaimTemplates"] = []
    assert create(kinds.STATEFUL_SET, tree) == {"NotFound spec.template.spec.containers[0].volumeMounts[0].name"}


def job(**spec: Any) -> dict[str, Any]:
    template = copy.deepcopy(TEMPLATE)
    template["spec"]["restartPolicy"] = spec.pop("restartPolicy", "Never")  # type: ignore[index]
    return workload(kinds.JOB, **{"template": template, **spec})


@pytest.mark.parametrize(
    ("tree", "faults"),
    [
        (job(), set()),
        (job(restartPolicy="Always"), {"Required spec.template.spec.restartPolicy"}),
        (job(completions=-1), {"Invalid spec.completions"}),
        (job(parallelism=1, completionMode="Indexed"), {"Required spec.completions"}),
        (job(selector={"matchLabels": {"x": "y"}}), {"Invalid spec.template.metadata.labels"}),
    ],
)
def test_jobs(tree: dict[str, Any], faults: set[str]) -> None:
    assert create(kinds.JOB, tree) == faults


def test_jobs_keep_their_pods() -> None:
    assert update(kinds.JOB, job(restartPolicy="OnFailure"), job()) == {"Invalid spec.template"}
    assert update(kinds.JOB, job(parallelism=3, completions=1), job()) == set()
    suspended = job(suspend=True)
    assert update(kinds.JOB, job(suspend=True, restartPolicy="OnFailure"), suspended) == set()
