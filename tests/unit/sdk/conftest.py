"""A small API with one node, and claims on demand."""

from __future__ import annotations

from typing import Any

import pytest

from kubedra.api import kinds
from tests.unit.sdk.memory_api import MemoryApi

DRIVER = "gpu.example.com"


@pytest.fixture
async def api() -> MemoryApi:
    api = MemoryApi()
    await api.create(kinds.NODE, {"metadata": {"name": "n1"}})
    api.writes.clear()
    return api


async def allocate(api: MemoryApi, name: str, *results: dict[str, Any], config: list[Any] | None = None) -> str:
    """Create a claim that has these devices, and return its uid."""
    claim = {
        "metadata": {"name": name},
        "spec": {"devices": {"requests": [{"name": "gpu"}]}},
        "status": {"allocation": {"devices": {"results": list(results), "config": config or []}}},
    }
    uid: str = (await api.create(kinds.RESOURCE_CLAIM, claim, "default")).metadata.uid
    return uid


def result(device: str, request: str = "gpu", driver: str = DRIVER, **more: Any) -> dict[str, Any]:
    """An allocation result."""
    return {"driver": driver, "pool": "n1", "device": device, "request": request, **more}
