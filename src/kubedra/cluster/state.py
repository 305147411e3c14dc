"""``cluster.json``: what runs on a data folder, by pid, start time and boot, so that nobody touches a stranger."""

from __future__ import annotations

from pathlib import Path

import msgspec

from kubedra.node.runtime.identity import ProcessIdentity, folder_id

STATE_FILE = "cluster.json"


class Running(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """What ``cluster.json`` holds."""

    server: str
    kubeconfig: str
    token_file: str
    main: ProcessIdentity
    driver: ProcessIdentity | None = None
    fleet: str = ""
    folder: str = ""


def read_state(data_dir: Path) -> Running | None:
    """What the data folder says of its cluster, running or not; None when it says nothing. Raises PermissionError.

    A copy of a data folder says nothing: what runs belongs to the folder that was copied.
    """
    try:
        state = msgspec.json.decode((data_dir / STATE_FILE).read_bytes(), type=Running)
        return state if state.folder in ("", folder_id(data_dir)) else None
    except (FileNotFoundError, NotADirectoryError, msgspec.DecodeError):
        return None


def write_state(data_dir: Path, state: Running) -> None:
    """Say what runs; readers see the old text or the new one, never a half."""
    path = data_dir / STATE_FILE
    temporary = path.with_suffix(".json.new")
    temporary.write_bytes(msgspec.json.format(msgspec.json.encode(state)))
    temporary.replace(path)
