"""For driver authors: a DRA driver in Python.

    class Driver:
        name = "gpu.example.com"
        def discover(self): return [device("gpu-0", {"model": "x"}, memory="80Gi")]
        def prepare(self, allocation):
            return [PreparedDevice(edits=ContainerEdits(env=(f"GPU={d.device}",))) for d in allocation.devices]
        def unprepare(self, claim): pass

    run(Driver())

That is a whole driver. ``driver`` says what the three methods get and give, ``resources`` how devices are described,
``plugin`` what can be set. The names below are the public interface.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kubedra.cdi.spec import ContainerEdits, DeviceNode, Hook, Mount
    from kubedra.sdk.driver import (
        AllocatedDevice,
        Allocation,
        Driver,
        HealthSource,
        PreparedClaim,
        PreparedDevice,
        PrepareError,
    )
    from kubedra.sdk.plugin import NodePlugin, PluginPaths, PluginSettings
    from kubedra.sdk.process import run
    from kubedra.sdk.resources import Pool, device, flag, number, text, version
    from kubedra.wire.health import DeviceHealth

_MODULES = {
    "kubedra.cdi.spec": ("ContainerEdits", "DeviceNode", "Hook", "Mount"),
    "kubedra.sdk.driver": (
        "AllocatedDevice",
        "Allocation",
        "Driver",
        "HealthSource",
        "PrepareError",
        "PreparedClaim",
        "PreparedDevice",
    ),
    "kubedra.sdk.plugin": ("NodePlugin", "PluginPaths", "PluginSettings"),
    "kubedra.sdk.process": ("run",),
    "kubedra.sdk.resources": ("Pool", "device", "flag", "number", "text", "version"),
    "kubedra.wire.health": ("DeviceHealth",),
}

__all__ = [
    "AllocatedDevice",
    "Allocation",
    "ContainerEdits",
    "DeviceHealth",
    "DeviceNode",
    "Driver",
    "HealthSource",
    "Hook",
    "Mount",
    "NodePlugin",
    "PluginPaths",
    "PluginSettings",
    "Pool",
    "PrepareError",
    "PreparedClaim",
    "PreparedDevice",
    "device",
    "flag",
    "number",
    "run",
    "text",
    "version",
]


def __getattr__(name: str) -> Any:
    """Import on first use: a process that only needs records does not pay for gRPC."""
    for module, names in _MODULES.items():
        if name in names:
            import importlib

            return getattr(importlib.import_module(module), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
