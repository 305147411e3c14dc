"""The Container Device Interface's data: what a container gets when it is given a device.

A driver writes a spec file with devices and their *edits* (environment, mounts, device nodes …); whoever starts the
container names devices as ``vendor/class=device`` and applies the edits. Validation says every mistake at once, with
its place. Upstream counterpart: tags.cncf.io/container-device-interface/specs-go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

KNOWN_VERSIONS = ("0.3.0", "0.4.0", "0.5.0", "0.6.0", "0.7.0", "0.8.0", "1.0.0", "1.1.0")
HOOK_NAMES = ("prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop")

_VENDOR = re.compile(r"[A-Za-z]([A-Za-z0-9_.-]*[A-Za-z0-9])?")
_CLASS = re.compile(r"[A-Za-z]([A-Za-z0-9_.-]*[A-Za-z0-9])?")
_DEVICE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.:-]*[A-Za-z0-9])?")


class DeviceNode(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A device node that appears in the container at ``path``."""

    path: str
    host_path: str = ""
    type: str = ""
    major: int = 0
    minor: int = 0
    file_mode: int | None = None
    permissions: str = ""
    uid: int | None = None
    gid: int | None = None


class Mount(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A host path that appears in the container."""

    host_path: str
    container_path: str
    options: tuple[str, ...] = ()
    type: str = ""


class Hook(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A program that an OCI runtime calls at a moment of the container's life."""

    hook_name: str
    path: str
    args: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    timeout: int | None = None


class ContainerEdits(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What changes in a container."""

    env: tuple[str, ...] = ()
    device_nodes: tuple[DeviceNode, ...] = ()
    mounts: tuple[Mount, ...] = ()
    hooks: tuple[Hook, ...] = ()
    additional_gids: tuple[int, ...] = msgspec.field(name="additionalGids", default=())
    net_devices: tuple[dict[str, str], ...] = ()
    intel_rdt: dict[str, Any] | None = None

    def __add__(self, other: ContainerEdits) -> ContainerEdits:
        return ContainerEdits(
            self.env + other.env,
            self.device_nodes + other.device_nodes,
            self.mounts + other.mounts,
            self.hooks + other.hooks,
            self.additional_gids + other.additional_gids,
            self.net_devices + other.net_devices,
            other.intel_rdt or self.intel_rdt,
        )


class Device(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A device by name, with its edits."""

    name: str
    container_edits: ContainerEdits = ContainerEdits()
    annotations: dict[str, str] = {}


class Spec(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A spec file: devices of one kind, and edits that every container with one of them gets."""

    kind: str
    cdi_version: str = "0.5.0"
    devices: tuple[Device, ...] = ()
    container_edits: ContainerEdits = ContainerEdits()
    annotations: dict[str, str] = {}


class InvalidSpec(ValueError):
    """A spec or a name breaks the rules; the text lists every broken one."""


def qualified_name(kind: str, device: str) -> str:
    """Return ``vendor/class=device``; raises ``InvalidSpec`` when a part is not allowed."""
    problems = [*_kind_problems(kind), *_device_name_problems(device)]
    if problems:
        raise InvalidSpec("; ".join(problems))
    return f"{kind}={device}"


def parse_qualified_name(name: str) -> tuple[str, str]:
    """Return kind and device of ``vendor/class=device``; raises ``InvalidSpec``."""
    kind, equals, device = name.partition("=")
    if not equals:
        raise InvalidSpec(f'unqualified CDI device "{name}": expected vendor/class=device')
    qualified_name(kind, device)
    return kind, device


def validate(spec: Spec) -> list[str]:
    """Return every rule that ``spec`` breaks, as sentences with their place."""
    return list(_problems(spec))


def read_spec(data: bytes) -> Spec:
    """Decode and validate a JSON spec; raises ``InvalidSpec``."""
    try:
        spec = msgspec.json.decode(data, type=Spec)
    except msgspec.MsgspecError as error:
        raise InvalidSpec(str(error)) from error
    problems = validate(spec)
    if problems:
        raise InvalidSpec("; ".join(problems))
    return spec


def write_spec(spec: Spec) -> bytes:
    """Return ``spec`` as JSON; raises ``InvalidSpec`` for one that no reader would take."""
    problems = validate(spec)
    if problems:
        raise InvalidSpec("; ".join(problems))
    # cdiVersion has a default here and none in the format.
    tree = {"cdiVersion": spec.cdi_version, **msgspec.to_builtins(spec)}
    return msgspec.json.format(msgspec.json.encode(tree), indent=2) + b"\n"


def _problems(spec: Spec) -> Iterator[str]:
    if spec.cdi_version not in KNOWN_VERSIONS:
        yield f'cdiVersion: unknown version "{spec.cdi_version}"'
    yield from _kind_problems(spec.kind)
    if not spec.devices:
        yield "devices: at least one device is required"
    seen: set[str] = set()
    for device in spec.devices:
        yield from _device_name_problems(device.name)
        if device.name in seen:
            yield f'devices: duplicate device "{device.name}"'
        seen.add(device.name)
        if device.container_edits == ContainerEdits() and spec.container_edits == ContainerEdits():
            yield f'devices["{device.name}"].containerEdits: must not be empty'
        yield from _edits_problems(device.container_edits, f'devices["{device.name}"].containerEdits')
    yield from _edits_problems(spec.container_edits, "containerEdits")


def _kind_problems(kind: str) -> Iterator[str]:
    vendor, slash, class_ = kind.partition("/")
    if not slash or not _VENDOR.fullmatch(vendor) or not _CLASS.fullmatch(class_):
        yield f'kind: "{kind}" must be vendor/class of letters, digits, "_", "." and "-", starting with a letter'


def _device_name_problems(name: str) -> Iterator[str]:
    if not _DEVICE.fullmatch(name):
        yield f'devices: "{name}" must start and end with a letter or digit, with letters, digits, "_", ".", ":", "-"'


def _edits_problems(edits: ContainerEdits, place: str) -> Iterator[str]:
    for variable in edits.env:
        if "=" not in variable or variable.startswith("=") or "\0" in variable:
            yield f'{place}.env: "{variable}" must be NAME=VALUE'
    for node in edits.device_nodes:
        if not node.path:
            yield f"{place}.deviceNodes: a path is required"
        if node.type not in ("", "b", "c", "u", "p"):
            yield f'{place}.deviceNodes: unknown type "{node.type}"'
        if set(node.permissions) - set("rwm"):
            yield f'{place}.deviceNodes: permissions "{node.permissions}" may hold r, w and m'
    for mount in edits.mounts:
        if not mount.host_path or not mount.container_path:
            yield f"{place}.mounts: hostPath and containerPath are required"
    for hook in edits.hooks:
        if hook.hook_name not in HOOK_NAMES:
            yield f'{place}.hooks: unknown hookName "{hook.hook_name}"'
        if not hook.path:
            yield f"{place}.hooks: a path is required"
