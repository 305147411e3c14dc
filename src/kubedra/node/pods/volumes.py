"""A pod's volumes as folders of the node, and where its containers see them.

Contents are computed first (pure, all that can be refused is refused) and written after. Files that a container
must not see half written are renamed into place. Upstream counterpart:
pkg/volume/{emptydir,hostpath,configmap,secret,projected,downwardapi}.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from kubedra.api.core_v1 import Container, DownwardAPIVolumeFile, HostPathVolumeSource, KeyToPath, Pod, Volume
from kubedra.node.pods.environment import ConfigError, NodeFacts, Sources, expand, field_value, resource_value
from kubedra.node.runtime.contract import Mount

DEFAULT_MODE = 0o644


class VolumeError(Exception):
    """A volume can't be set up; the text says which and why."""


class TokenRequest(msgspec.Struct, frozen=True):
    """A service account token that a volume wants."""

    volume: str
    path: str
    audience: str
    expiration_seconds: int


class VolumeFile(msgspec.Struct, frozen=True):
    """A file of a volume."""

    content: bytes
    mode: int


def token_requests(pod: Pod) -> tuple[TokenRequest, ...]:
    """The tokens to ask the API for before ``volume_files``."""
    return tuple(
        TokenRequest(
            volume.name,
            projection.service_account_token.path,
            projection.service_account_token.audience,
            projection.service_account_token.expiration_seconds or 3600,
        )
        for volume in pod.spec.volumes
        if volume.projected is not None
        for projection in volume.projected.sources
        if projection.service_account_token is not None
    )


def volume_files(
    pod: Pod, sources: Sources, node: NodeFacts, tokens: Mapping[TokenRequest, str]
) -> dict[str, dict[str, VolumeFile]]:
    """The files of every volume that has any, by volume name and path; raises VolumeError."""
    found = {}
    for volume in pod.spec.volumes:
        try:
            files = _files(pod, volume, sources, node, tokens)
        except ConfigError as error:
            raise VolumeError(f'MountVolume.SetUp failed for volume "{volume.name}" : {error}') from error
        if files is not None:
            found[volume.name] = files
    return found


def _files(
    pod: Pod, volume: Volume, sources: Sources, node: NodeFacts, tokens: Mapping[TokenRequest, str]
) -> dict[str, VolumeFile] | None:
    if volume.config_map is not None:
        cm = volume.config_map
        data = sources.config_maps.get(cm.name)
        return _selected("configmap", cm.name, data, cm.items, cm.optional, cm.default_mode)
    if volume.secret is not None:
        secret = volume.secret
        data = sources.secrets.get(secret.secret_name)
        return _selected("secret", secret.secret_name, data, secret.items, secret.optional, secret.default_mode)
    if volume.downward_api is not None:
        return _downward(pod, volume.downward_api.items, volume.downward_api.default_mode, node)
    if volume.projected is None:
        return None
    mode = volume.projected.default_mode
    files: dict[str, VolumeFile] = {}
    for part in volume.projected.sources:
        if part.config_map is not None:
            map_, data = part.config_map, sources.config_maps.get(part.config_map.name)
            files |= _selected("configmap", map_.name, data, map_.items, map_.optional, mode)
        if part.secret is not None:
            named, data = part.secret, sources.secrets.get(part.secret.name)
            files |= _selected("secret", named.name, data, named.items, named.optional, mode)
        if part.downward_api is not None:
            files |= _downward(pod, part.downward_api.items, mode, node)
    for request in token_requests(pod):
        if request.volume == volume.name:
            files[request.path] = VolumeFile(tokens[request].encode(), 0o600)
    return files


def _selected(
    kind: str,
    name: str,
    data: Mapping[str, bytes] | None,
    items: tuple[KeyToPath, ...],
    optional: bool | None,
    mode: int | None,
) -> dict[str, VolumeFile]:
    mode = DEFAULT_MODE if mode is None else mode
    if data is None:
        if optional:
            return {}
        raise ConfigError(f'{kind} "{name}" not found')
    if not items:
        return {key: VolumeFile(value, mode) for key, value in data.items()}
    files = {}
    for item in items:
        if item.key not in data:
            if optional:
                continue
            raise ConfigError(f"references non-existent {kind} key: {item.key}")
        files[item.path] = VolumeFile(data[item.key], mode if item.mode is None else item.mode)
    return files


def _downward(
    pod: Pod, items: tuple[DownwardAPIVolumeFile, ...], mode: int | None, node: NodeFacts
) -> dict[str, VolumeFile]:
    files = {}
    for item in items:
        if item.field_ref is not None:
            text = field_value(pod, item.field_ref.field_path, node)
        elif item.resource_field_ref is not None:
            wanted = item.resource_field_ref.container_name
            container = next((c for c in pod.spec.containers if c.name == wanted), None)
            if container is None:
                raise ConfigError(f"container {wanted} not found")
            text = resource_value(container, item.resource_field_ref, node)
        else:
            continue
        chosen = item.mode if item.mode is not None else mode
        files[item.path] = VolumeFile(text.encode(), DEFAULT_MODE if chosen is None else chosen)
    return files


def set_up(pod: Pod, folder: Path, files: Mapping[str, Mapping[str, VolumeFile]]) -> dict[str, str]:
    """Creates the volumes below ``folder`` and returns where each one is; raises VolumeError. Idempotent."""
    found = {}
    group = pod.spec.security_context.fs_group if pod.spec.security_context is not None else None
    for volume in pod.spec.volumes:
        try:
            if volume.host_path is not None:
                found[volume.name] = _host_path(volume.name, volume.host_path)
                continue
            if volume.empty_dir is None and volume.name not in files:
                raise VolumeError(
                    f'volume "{volume.name}": this node agent has emptyDir, hostPath, configMap, secret, downwardAPI '
                    "and projected volumes"
                )
            path = folder / volume.name
            path.mkdir(parents=True, exist_ok=True)
            path.chmod(0o2777 if group is not None else 0o777)
            _write(path, files.get(volume.name, {}))
            if group is not None and os.geteuid() == 0:
                _give_to_group(path, group)
            found[volume.name] = str(path)
        except OSError as error:
            raise VolumeError(f'MountVolume.SetUp failed for volume "{volume.name}" : {error}') from error
    return found


def _host_path(name: str, source: HostPathVolumeSource) -> str:
    path = Path(source.path)
    match source.type:
        case "DirectoryOrCreate":
            path.mkdir(parents=True, exist_ok=True, mode=0o755)
        case "FileOrCreate":
            path.touch(exist_ok=True)
        case "Directory" if not path.is_dir():
            raise VolumeError(f"hostPath type check failed: {path} is not a directory")
        case "File" if not path.is_file():
            raise VolumeError(f"hostPath type check failed: {path} is not a file")
        case "Socket" if not path.is_socket():
            raise VolumeError(f"hostPath type check failed: {path} is not a socket file")
        case "CharDevice" if not path.is_char_device():
            raise VolumeError(f"hostPath type check failed: {path} is not a character device")
        case "BlockDevice" if not path.is_block_device():
            raise VolumeError(f"hostPath type check failed: {path} is not a block device")
        case "" if not path.exists():
            # As Docker did, and since nobody asked for a check.
            path.mkdir(parents=True, exist_ok=True, mode=0o755)
        case _:
            pass
    return source.path


def _write(folder: Path, files: Mapping[str, VolumeFile]) -> None:
    for name, file in files.items():
        path = folder / name
        if not path.resolve().is_relative_to(folder.resolve()):
            raise VolumeError(f"the path {name} leads out of its volume")
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f"..{path.name}.tmp")
        temporary.write_bytes(file.content)
        temporary.chmod(file.mode)
        temporary.replace(path)


def _give_to_group(folder: Path, group: int) -> None:
    for path in (folder, *folder.rglob("*")):
        os.chown(path, -1, group)
        path.chmod(path.stat().st_mode | 0o060)


def container_mounts(
    container: Container, volumes: Mapping[str, str], env: Mapping[str, str], made: Iterable[str]
) -> tuple[Mount, ...]:
    """Where a container sees its volumes; a sub-path is created in volumes that we made. Raises VolumeError."""
    made = frozenset(made)
    mounts = []
    for mount in container.volume_mounts:
        if mount.name not in volumes:
            raise VolumeError(f'container {container.name} mounts volume "{mount.name}" which the pod does not have')
        source = volumes[mount.name]
        sub_path = expand(mount.sub_path_expr, env) if mount.sub_path_expr else mount.sub_path
        if sub_path:
            path = (Path(source) / sub_path).resolve()
            if not path.is_relative_to(Path(source).resolve()):
                raise VolumeError(f"subPath {sub_path} leads out of its volume")
            if mount.name in made:
                path.mkdir(parents=True, exist_ok=True) if not path.exists() else None
            source = str(path)
        mounts.append(Mount(mount.name, source, mount.mount_path, bool(mount.read_only)))
    return tuple(mounts)
