"""Files that tell a container about its devices (KEP-5304): attributes and network data by request.

A file per claim and request lies in the driver's folder and is mounted read-only into containers that use the request,
by a CDI device of its own. Names and paths are upstream's, so the upstream reader library works in the container.
Upstream counterpart: metadata.go of the kubelet plugin helper.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec

from kubedra.api import resource_v1
from kubedra.cdi.folder import SpecFolder
from kubedra.cdi.spec import ContainerEdits, Device, Mount, Spec
from kubedra.sdk.checkpoint import ClaimRecord, HeldDevice

API_VERSION = "metadata.resource.k8s.io/v1alpha1"
CONTAINER_ROOT = "/var/run/kubernetes.io/dra-device-attributes"

Lookup = Callable[[str, str], "resource_v1.Device | None"]


class _Meta(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    namespace: str
    uid: str
    generation: int = 1


class _DeviceEntry(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    driver: str
    pool: str
    name: str
    attributes: dict[str, resource_v1.DeviceAttribute] = {}


class _RequestEntry(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    devices: list[_DeviceEntry]


class _DeviceMetadata(msgspec.Struct, frozen=True, rename="camel"):
    kind: str
    api_version: str
    metadata: _Meta
    requests: list[_RequestEntry]
    pod_claim_name: str | msgspec.UnsetType = msgspec.UNSET


class MetadataFiles:
    """Writes and removes the metadata files of one driver on one node. Blocks on the disk."""

    def __init__(self, driver: str, folder: Path, cdi: SpecFolder, published: Lookup) -> None:
        self._driver = driver
        self._folder = folder / "dra-device-metadata"
        self._cdi = cdi
        self._published = published

    def write(self, claim: ClaimRecord) -> tuple[dict[str, Spec], dict[str, str]]:
        """Write the files of a claim; return the CDI specs that mount them, by file name, and their ids by request."""
        by_request: dict[str, list[HeldDevice]] = {}
        for held in claim.devices:
            by_request.setdefault(held.allocated.main_request, []).append(held)
        specs, ids = {}, {}
        for request, devices in by_request.items():
            path = self._write(claim, request, devices)
            mount = Mount(str(path), self.container_path(claim, request), ("ro", "bind"))
            name = f"{claim.uid}_{request}"
            edits = ContainerEdits(mounts=(mount,))
            specs[f"{self._driver}_metadata_{name}"] = Spec(f"{self._driver}/metadata", devices=(Device(name, edits),))
            ids[request] = f"{self._driver}/metadata={name}"
        return specs, ids

    def remove(self, claim: ClaimRecord) -> list[str]:
        """Remove the files of a claim; return the names of its CDI files, whatever its requests were."""
        shutil.rmtree(self._claim_folder(claim), ignore_errors=True)
        prefix = f"{self._driver}_metadata_{claim.uid}_"
        return [name for name in self._cdi.names() if name.startswith(prefix)]

    def container_path(self, claim: ClaimRecord, request: str) -> str:
        """Return where a container finds the file."""
        if claim.pod_claim_name:
            place = f"resourceclaimtemplates/{claim.pod_claim_name}"
        else:
            place = f"resourceclaims/{claim.name}"
        return f"{CONTAINER_ROOT}/{place}/{request}/{self._driver}-metadata.json"

    def _claim_folder(self, claim: ClaimRecord) -> Path:
        return self._folder / f"{claim.namespace}_{claim.name}"

    def _write(self, claim: ClaimRecord, request: str, devices: list[HeldDevice]) -> Path:
        path = self._claim_folder(claim) / request / "metadata.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        # No fsync: the file is written anew whenever the claim is prepared, also after a reboot.
        temporary = path.with_name(".metadata.json.tmp")
        temporary.write_bytes(msgspec.json.encode(self._content(claim, devices)) + b"\n")
        temporary.chmod(0o644)
        temporary.replace(path)
        return path

    def _content(self, claim: ClaimRecord, devices: list[HeldDevice]) -> _DeviceMetadata:
        requests: dict[str, list[_DeviceEntry]] = {}
        for held in devices:
            allocated = held.allocated
            attributes = held.attributes
            if attributes is None:
                published = self._published(allocated.pool, allocated.device)
                attributes = published.attributes if published else {}
            entry = _DeviceEntry(self._driver, allocated.pool, allocated.device, attributes)
            requests.setdefault(allocated.request, []).append(entry)
        return _DeviceMetadata(
            "DeviceMetadata",
            API_VERSION,
            _Meta(claim.name, claim.namespace, claim.uid),
            [_RequestEntry(name, entries) for name, entries in requests.items()],
            claim.pod_claim_name or msgspec.UNSET,
        )
