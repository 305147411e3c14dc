"""A folder of CDI spec files: drivers write into it, whoever starts containers looks devices up.

Writes are durable (a container must not start with a device whose file a power cut took). A broken file never hides
the good ones: its error is kept and told when somebody asks for a device that is not found. Upstream counterpart: the
cache of tags.cncf.io/container-device-interface/pkg/cdi.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from kubedra.cdi.spec import ContainerEdits, InvalidSpec, Spec, parse_qualified_name, read_spec, write_spec
from kubedra.wire.durable import remove_all_durably, remove_durably, write_all_durably


class UnresolvedDevices(LookupError):
    """Some CDI ids name no device; the text names them, and the broken files that may be to blame."""

    def __init__(self, ids: Iterable[str], reasons: Iterable[str]) -> None:
        self.ids = tuple(ids)
        text = f"unresolvable CDI devices {', '.join(self.ids)}"
        broken = "; ".join(reasons)
        super().__init__(f"{text} ({broken})" if broken else text)


class SpecFolder:
    """Spec files in one folder; what was read is kept until the file changes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._read: dict[str, tuple[tuple[int, int, int], Spec | str]] = {}

    def write(self, name: str, spec: Spec) -> Path:
        """Write ``<name>.json`` durably and return its path; raises ``InvalidSpec``. Blocks on the disk."""
        self.write_all({name: spec})
        return self.path / f"{name}.json"

    def write_all(self, specs: Mapping[str, Spec]) -> None:
        """Write several files at the price of few syncs; raises ``InvalidSpec`` before anything is written."""
        write_all_durably({self.path / f"{name}.json": write_spec(spec) for name, spec in specs.items()}, 0o644)

    def remove(self, name: str) -> bool:
        """Remove ``<name>.json``; False when it was not there."""
        return remove_durably(self.path / f"{name}.json")

    def remove_all(self, names: Iterable[str]) -> None:
        """Remove those of the files that are there."""
        remove_all_durably(self.path / f"{name}.json" for name in names)

    def names(self) -> set[str]:
        """Return the names of all spec files, broken ones too."""
        return {entry.stem for entry in self.path.glob("*.json") if not entry.name.startswith(".")}

    def resolve(self, ids: Iterable[str]) -> ContainerEdits:
        """Return the edits of all devices, those of a spec file once and first; raises ``UnresolvedDevices``.

        An id that appears twice counts once: the kubelet repeats ids, and a repeated mount would fail.
        """
        devices, broken = self._index()
        edits = ContainerEdits()
        used: set[str] = set()
        missing = []
        for name in dict.fromkeys(ids):
            try:
                parse_qualified_name(name)
            except InvalidSpec as error:
                broken.append(str(error))
            found = devices.get(name, [])
            if len(found) != 1:
                missing.append(name)
                broken.extend(f"{name} is defined in {file}" for file, _, _ in found)
                continue
            file, spec, device_edits = found[0]
            if file not in used:
                used.add(file)
                edits = edits + spec.container_edits
            edits = edits + device_edits
        if missing:
            raise UnresolvedDevices(missing, broken)
        return edits

    def _index(self) -> tuple[dict[str, list[tuple[str, Spec, ContainerEdits]]], list[str]]:
        devices: dict[str, list[tuple[str, Spec, ContainerEdits]]] = {}
        broken = []
        for file, spec in self._load().items():
            if isinstance(spec, str):
                broken.append(f"{file}: {spec}")
                continue
            for device in spec.devices:
                name = f"{spec.kind}={device.name}"
                devices.setdefault(name, []).append((file, spec, device.container_edits))
        return devices, broken

    def _load(self) -> dict[str, Spec | str]:
        fresh: dict[str, tuple[tuple[int, int, int], Spec | str]] = {}
        try:
            entries = sorted(os.scandir(self.path), key=lambda entry: entry.name)
        except FileNotFoundError:
            entries = []
        for entry in entries:
            if not entry.name.endswith(".json") or entry.name.startswith("."):
                continue
            try:
                status = entry.stat()
                stamp = (status.st_ino, status.st_mtime_ns, status.st_size)
                known = self._read.get(entry.name)
                if known is not None and known[0] == stamp:
                    fresh[entry.name] = known
                else:
                    fresh[entry.name] = (stamp, read_spec(Path(entry.path).read_bytes()))
            except FileNotFoundError:
                continue
            except InvalidSpec as error:
                fresh[entry.name] = (stamp, str(error))
            except OSError as error:
                # Not kept: a permission may be repaired without the file's stamp changing.
                fresh[entry.name] = ((0, 0, 0), str(error))
        self._read = fresh
        return {name: content for name, (_, content) in fresh.items()}
