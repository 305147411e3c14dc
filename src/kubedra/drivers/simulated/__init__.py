"""A driver without hardware: real cards from a catalogue, on the nodes of a fleet file.

It is a process of its own that speaks gRPC and the Kubernetes API and nothing else, so a cluster with it behaves like
one with vendors' drivers. ``fleet`` reads the fleet file, ``catalogue`` knows the cards, ``cards`` places them in a
node, ``driver`` serves them through DRA and ``device_plugin`` the old way; ``service`` runs all of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kubedra.drivers.simulated.service import SimulatedDriver, SimulatedDriverSettings

__all__ = ["SimulatedDriver", "SimulatedDriverSettings"]


def __getattr__(name: str) -> Any:
    """Import on first use: whoever only reads a fleet file does not pay for gRPC."""
    if name in __all__:
        from kubedra.drivers.simulated import service

        return getattr(service, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
