"""Every wait and folder of the node agent, with upstream's default where upstream has one.

Upstream counterpart: KubeletConfiguration. Where the kubelet is slow on purpose or by accident (60 to 90 s until a
failed prepare is tried again, 1 s ticks, 10 s node status) ours is quicker, because our waits cost nothing on one
machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Waits:
    """How long the agent waits for what, in seconds."""

    plugin_scan: float = 0.1
    plugin_info: float = 1.0
    plugin_notify: float = 5.0
    plugin_dial: float = 10.0
    plugin_retry_first: float = 0.5
    plugin_retry_last: float = 30.0
    prepare: float = 45.0
    unprepare: float = 45.0
    # The kubelet takes 60 to 90 s for the first, without growth.
    prepare_retry_first: float = 0.25
    prepare_retry_last: float = 10.0
    slice_wipe: float = 30.0
    health_restart: float = 5.0
    health_default_timeout: float = 30.0
    device_plugin_gone: float = 300.0
    pre_start_container: float = 30.0
    restart_first: float = 10.0
    restart_last: float = 300.0
    restart_forgotten: float = 600.0
    lease_duration: float = 40.0
    lease_renew: float = 10.0
    node_status: float = 10.0
    log_follow: float = 0.1
    orphan_check: float = 10.0


@dataclass(frozen=True)
class AgentSettings:
    """What one agent needs to know. All files lie below ``data_dir``, all sockets below ``run_dir``."""

    node: str
    data_dir: Path
    run_dir: Path
    runtime: str = "process"
    host: str = "127.0.0.1"
    address: str = "127.0.0.1"
    port: int = 0
    cpu: str = ""
    memory: str = ""
    pods: int = 110
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Mapping[str, str], ...] = ()
    # The kubelet API: certificate and key that it serves, the authority of its clients, and who of them may ask.
    tls_cert_file: Path | None = None
    tls_key_file: Path | None = None
    client_ca_file: Path | None = None
    allowed_clients: tuple[str, ...] = ("kube-apiserver-kubelet-client",)
    allowed_groups: tuple[str, ...] = ("system:masters",)
    # Told to every container, so that programs with a service account find the API.
    container_env: Mapping[str, str] = field(default_factory=dict)
    # Folders that containers of the bwrap runtime must not see.
    hidden: tuple[str, ...] = ()
    own_network: bool = False
    log_limit: int = 10 << 20
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    version: str = "1.37"
    waits: Waits = Waits()
