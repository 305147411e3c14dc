from __future__ import annotations

from typing import Any

from kubedra.server.patch.apply.scale import to_parent, to_scale

PATHS = {"apps/v1": ("f:spec", "f:replicas")}


def entry(manager: str, operation: str, fields: dict[str, Any], api_version: str = "apps/v1") -> dict[str, Any]:
    return {
        "manager": manager,
        "operation": operation,
        "apiVersion": api_version,
        "time": "2026-01-01T00:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }


PARENT = [
    entry("m", "Apply", {"f:spec": {"f:paused": {}, "f:replicas": {}}}),
    entry("u", "Update", {"f:metadata": {"f:labels": {"f:a": {}}}}),
]


def test_a_scale_shows_the_owners_of_the_replicas() -> None:
    assert to_scale(PARENT, PATHS) == [entry("m", "Apply", {"f:spec": {"f:replicas": {}}}, "autoscaling/v1")]


def test_replicas_taken_through_the_scale_leave_the_former_owner() -> None:
    scale = [entry("hpa", "Update", {"f:spec": {"f:replicas": {}}}, "autoscaling/v1")]
    assert to_parent(PARENT, scale, "apps/v1", PATHS) == [
        entry("m", "Apply", {"f:spec": {"f:paused": {}}}),
        {k: v for k, v in entry("hpa", "Update", {"f:spec": {"f:replicas": {}}}).items() if k != "time"},
        entry("u", "Update", {"f:metadata": {"f:labels": {"f:a": {}}}}),
    ]


def test_an_unchanged_scale_changes_nothing() -> None:
    assert to_parent(PARENT, to_scale(PARENT, PATHS), "apps/v1", PATHS) == PARENT
