"""Small files that must survive a power cut: write, fsync, rename, fsync of the folder; secrets are 0600."""

from __future__ import annotations

import os
from pathlib import Path

from kubedra.server.store.folder import sync_folder


def write_durably(path: Path, content: bytes, *, secret: bool = False) -> None:
    """Replaces a file in one step; a reader sees the old content or the new."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600 if secret else 0o644)
    try:
        os.write(handle, content)
        os.fsync(handle)
    finally:
        os.close(handle)
    temporary.replace(path)
    sync_folder(path.parent)
