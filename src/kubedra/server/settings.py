"""Settings of the embedded API server."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from kubedra.base.features import FeatureGates

DEFAULT_PORT = 6443


@dataclass(frozen=True)
class ServerSettings:
    """Where the server keeps its data and how it is reached.

    `port` 0 takes any free port, None the default port or, if that is taken, the next free one.
    `http` False starts the store and the verbs without any socket (in-process clients only).
    """

    data_dir: Path
    host: str = "127.0.0.1"
    port: int | None = None
    http: bool = True
    # Whether system namespaces and default roles are made on start (a dump that is only read has its own).
    bootstrap: bool = True
    feature_gates: FeatureGates = field(default_factory=FeatureGates)
    # Admission plugins beyond the default ones: "NodeRestriction", "ServiceAccount".
    admission: frozenset[str] = frozenset()
    # Whether every new node is tainted until it is ready, as upstream does, or only one that registers itself.
    taint_all_nodes: bool = True
    # A static admin token; made up on first start when it is empty.
    admin_token: str = ""
    # How many events of one resource are kept for watches and paged lists.
    keep_events: int = 4096
    # How long events live after their last write.
    event_ttl_seconds: float = 3600.0
    # Seconds that open connections get when the server stops.
    stop_seconds: float = 5.0
