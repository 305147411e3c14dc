"""Puts together what one container is started with: command, environment, mounts, devices.

Upstream counterpart: generateContainerConfig of pkg/kubelet/kuberuntime and the CDI part of a container runtime.
"""

from __future__ import annotations

import os
import signal
import uuid
from collections.abc import Mapping
from pathlib import Path

from kubedra.api.core_v1 import Container, Pod
from kubedra.cdi.apply import ContainerConfig as CdiConfig
from kubedra.cdi.apply import apply
from kubedra.cdi.folder import UnresolvedDevices
from kubedra.cdi.spec import ContainerEdits
from kubedra.cdi.spec import DeviceNode as CdiNode
from kubedra.cdi.spec import Mount as CdiMount
from kubedra.node.device_plugins.pool import edits as plugin_edits
from kubedra.node.pods.environment import ConfigError, Sources, container_command, container_env
from kubedra.node.pods.services import NodeServices
from kubedra.node.pods.volumes import container_mounts
from kubedra.node.runtime.contract import ContainerConfig, DeviceNode, Mount, StartError

NETWORK_ANNOTATION = "kubedra.dev/network"


def container_config(
    services: NodeServices, pod: Pod, container: Container, attempt: int, sources: Sources, volumes: Mapping[str, str]
) -> ContainerConfig:
    """The complete config; raises ConfigError, VolumeError, StartError."""
    uid = pod.metadata.uid
    edits = _device_edits(services, pod, container)
    env = container_env(pod, container, sources, services.facts(), services.settings.container_env)
    made = [volume.name for volume in pod.spec.volumes if volume.host_path is None]
    mounts = container_mounts(container, volumes, env, made)
    applied = apply(
        edits,
        CdiConfig(
            env,
            tuple(CdiMount(m.source, m.target, ("ro",) if m.read_only else ()) for m in mounts),
        ),
    )
    names = {mount.target: mount.name for mount in mounts}
    folder = services.paths.pods_dir / uid / "termination"
    folder.mkdir(parents=True, exist_ok=True)
    context = container.security_context
    pod_context = pod.spec.security_context
    user = context.run_as_user if context is not None and context.run_as_user is not None else None
    group = context.run_as_group if context is not None and context.run_as_group is not None else None
    groups: tuple[int, ...] = applied.additional_gids
    if pod_context is not None:
        user = pod_context.run_as_user if user is None else user
        group = pod_context.run_as_group if group is None else group
        groups += pod_context.supplemental_groups
        groups += (pod_context.fs_group,) if pod_context.fs_group is not None else ()
    _check_user(container, pod, user)
    return ContainerConfig(
        id=uuid.uuid4().hex,
        pod_uid=uid,
        pod_name=pod.metadata.name,
        namespace=pod.metadata.namespace,
        name=container.name,
        attempt=attempt,
        command=container_command(container, applied.env),
        log_path=str(services.log_path(pod, container.name, attempt)),
        env=tuple(applied.env.items()),
        image=container.image,
        working_dir=container.working_dir,
        hostname=pod.spec.hostname or pod.metadata.name,
        mounts=tuple(
            Mount(names.get(m.container_path, ""), m.host_path, m.container_path, "ro" in m.options)
            for m in applied.mounts
        ),
        devices=tuple(DeviceNode(n.host_path or n.path, n.path, n.permissions or "rwm") for n in applied.device_nodes),
        uid=user,
        gid=group,
        groups=groups,
        stop_signal=_stop_signal(container),
        own_network=_own_network(services, pod),
        termination_log=str(folder / container.name),
    )


def _device_edits(services: NodeServices, pod: Pod, container: Container) -> ContainerEdits:
    ids: dict[str, None] = {}
    for _, device in services.claims.devices(pod, container):
        ids |= dict.fromkeys(device.cdi_device_ids)
    plugins = plugin_edits(services.devices.pool.held(pod.metadata.uid, container.name))
    ids |= dict.fromkeys(plugins.cdi_devices)
    try:
        edits = services.cdi.resolve(ids)
    except UnresolvedDevices as error:
        raise StartError(f"CDI device injection failed: {error}", "CreateContainerError") from error
    edits = edits + ContainerEdits(
        env=tuple(f"{name}={value}" for name, value in plugins.envs.items()),
        mounts=tuple(CdiMount(m.host_path, m.container_path, ("ro",) if m.read_only else ()) for m in plugins.mounts),
        device_nodes=tuple(CdiNode(n.container_path, n.host_path, permissions=n.permissions) for n in plugins.devices),
    )
    refused = [hook.hook_name for hook in edits.hooks]
    if refused or edits.net_devices or edits.intel_rdt:
        what = f"hooks ({', '.join(refused)})" if refused else "network devices or Intel RDT"
        raise StartError(
            f"a device of container {container.name} asks for {what}, which the {services.runtime.name} runtime "
            "does not have: only an OCI runtime can serve it",
            "CreateContainerError",
        )
    return edits


def _check_user(container: Container, pod: Pod, user: int | None) -> None:
    """Refuses to run as root what must not; raises ConfigError."""
    context, pod_context = container.security_context, pod.spec.security_context
    wish = context.run_as_non_root if context is not None else None
    if wish is None and pod_context is not None:
        wish = pod_context.run_as_non_root
    if not wish:
        return
    if user == 0:
        raise ConfigError("container's runAsUser breaks non-root policy")
    if user is None and os.geteuid() == 0:
        raise ConfigError("container has runAsNonRoot and would run as root: set runAsUser")


def _stop_signal(container: Container) -> int:
    name = container.lifecycle.stop_signal if container.lifecycle is not None else ""
    return int(getattr(signal, name, signal.SIGTERM)) if name else int(signal.SIGTERM)


def _own_network(services: NodeServices, pod: Pod) -> bool:
    wish = pod.metadata.annotations.get(NETWORK_ANNOTATION, "")
    if pod.spec.host_network or wish == "host":
        return False
    return services.settings.own_network or wish == "own"


def termination_message(container: Container, config: ContainerConfig, exit_code: int) -> str:
    """What the container left as its last words: its termination file, else the end of its log if it failed."""
    try:
        text = Path(config.termination_log).read_bytes()[-4096:].decode(errors="replace")
    except OSError:
        text = ""
    if text or container.termination_message_policy != "FallbackToLogsOnError" or exit_code == 0:
        return text
    try:
        lines = Path(config.log_path).read_text(errors="replace").splitlines()[-80:]
    except OSError:
        return ""
    return "\n".join(line.split(" ", 3)[-1] for line in lines)[-2048:]
