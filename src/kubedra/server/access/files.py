"""Small files that must survive a power cut; secrets are 0600. Made and replaced as everything durable is."""

from __future__ import annotations

from pathlib import Path

from kubedra.wire import durable


def write_durably(path: Path, content: bytes, *, secret: bool = False) -> None:
    """Replaces a file in one step; a reader sees the old content or the new."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    durable.write_durably(path, content, 0o600 if secret else 0o644)
