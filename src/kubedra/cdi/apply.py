"""Applies CDI edits to what a container is started with.

The container is described in the words of CDI alone, so every runtime can be fed from it. Hooks are kept apart: only
an OCI runtime calls them, and a runtime that can't must say so. Upstream counterpart: ContainerEdits.Apply of
tags.cncf.io/container-device-interface/pkg/cdi.
"""

from __future__ import annotations

import msgspec

from kubedra.cdi.spec import ContainerEdits, DeviceNode, Hook, Mount


class ContainerConfig(msgspec.Struct, frozen=True):
    """What CDI can change in a container; environment by name, in order."""

    env: dict[str, str] = {}
    mounts: tuple[Mount, ...] = ()
    device_nodes: tuple[DeviceNode, ...] = ()
    additional_gids: tuple[int, ...] = ()
    hooks: tuple[Hook, ...] = ()


def apply(edits: ContainerEdits, config: ContainerConfig) -> ContainerConfig:
    """Return ``config`` with ``edits``.

    A variable, a mount point and a device node replace an earlier one of the same name or path. Mounts are ordered
    by depth, so that a mount never hides one below it. Group 0 is not added: it would give rights, not a device.
    """
    env = dict(config.env)
    for variable in edits.env:
        name, _, value = variable.partition("=")
        env[name] = value
    mounts = {mount.container_path: mount for mount in config.mounts}
    for mount in edits.mounts:
        mounts.pop(mount.container_path, None)
        mounts[mount.container_path] = mount
    nodes = {node.path: node for node in config.device_nodes}
    for node in edits.device_nodes:
        nodes[node.path] = node
    gids = dict.fromkeys((*config.additional_gids, *(gid for gid in edits.additional_gids if gid != 0)))
    return ContainerConfig(
        env,
        tuple(sorted(mounts.values(), key=lambda mount: mount.container_path.rstrip("/").count("/"))),
        tuple(nodes.values()),
        tuple(gids),
        config.hooks + edits.hooks,
    )
