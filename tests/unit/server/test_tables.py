"""What `kubectl get` shows of kinds that are only stored."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from kubedra.server.tables.columns import layout

NOW = datetime(2026, 1, 1, 0, 1, tzinfo=UTC)
META = {"name": "x", "creationTimestamp": "2026-01-01T00:00:00Z"}
TEMPLATE = {"spec": {"containers": [{"name": "c", "image": "i"}]}}


@pytest.mark.parametrize(
    ("resource", "tree", "row"),
    [
        (
            "persistentvolumes",
            {"spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany", "ReadWriteOnce"],
                      "persistentVolumeReclaimPolicy": "Retain", "claimRef": {"namespace": "n", "name": "c"}},
             "status": {"phase": "Bound"}},
            ["x", "1Gi", "RWO,RWX", "Retain", "Bound", "n/c", "", "<unset>", "", "60s"],
        ),
        ("persistentvolumeclaims", {"status": {"phase": "Bound", "accessModes": ["ReadWriteOncePod"]}},
         ["x", "Bound", "", "", "RWOP", "", "<unset>", "60s"]),
        (
            "storageclasses.storage.k8s.io",
            {"metadata": META | {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
             "provisioner": "p", "allowVolumeExpansion": True},
            ["x (default)", "p", "Delete", "Immediate", "true", "60s"],
        ),
        (
            "endpoints",
            {"subsets": [{"addresses": [{"ip": "10.0.0.1"}, {"ip": "10.0.0.2"}], "ports": [{"port": 1}, {"port": 2}]}]},
            ["x", "10.0.0.1:1,10.0.0.2:1,10.0.0.1:2 + 1 more...", "60s"],
        ),
        ("endpointslices.discovery.k8s.io", {"addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.1"]}]},
         ["x", "IPv4", "<unset>", "10.0.0.1", "60s"]),
        (
            "cronjobs.batch",
            {"spec": {"schedule": "* * * * *", "suspend": True, "jobTemplate": {"spec": {"template": TEMPLATE}}},
             "status": {"lastScheduleTime": "2026-01-01T00:00:30Z", "active": [{}]}},
            ["x", "* * * * *", "<none>", "True", 1, "30s", "60s"],
        ),
        (
            "horizontalpodautoscalers.autoscaling",
            {"spec": {"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "d"}, "metrics": [
                {"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": 70}}}]}},
            ["x", "Deployment/d", "cpu: <unknown>/70%", "<unset>", 3, 0, "60s"],
        ),
        (
            "ingresses.networking.k8s.io",
            {"spec": {"rules": [{"host": "a.example"}], "tls": [{}]},
             "status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}},
            ["x", "<none>", "a.example", "1.2.3.4", "80, 443", "60s"],
        ),
        ("networkpolicies.networking.k8s.io", {"spec": {"podSelector": {"matchLabels": {"a": "b"}}}},
         ["x", "a=b", "60s"]),
        (
            "certificatesigningrequests.certificates.k8s.io",
            {"spec": {"signerName": "s", "username": "u"},
             "status": {"conditions": [{"type": "Approved"}], "certificate": "eA=="}},
            ["x", "60s", "s", "u", "<none>", "Approved,Issued"],
        ),
        ("limitranges", {}, ["x", "2026-01-01T00:00:00Z"]),
        ("ipaddresses.networking.k8s.io", {}, ["x", "60s"]),
    ],
)  # fmt: skip
def test_a_stored_kind_shows_the_columns_of_upstream(resource: str, tree: dict[str, Any], row: list[Any]) -> None:
    columns = layout(resource)
    cells = columns.cells({"metadata": META, **tree}, NOW)
    narrow = [cell for cell, column in zip(cells, columns.definitions, strict=True) if not column["priority"]]
    assert narrow == row
