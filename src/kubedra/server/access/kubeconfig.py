"""Writes kubeconfigs: for the administrator and for each part that runs as a process of its own."""

from __future__ import annotations

import base64
from pathlib import Path

from kubedra.server.access.files import write_durably


def write_kubeconfig(
    path: Path, server: str, authority: Path, user: str, *, pair: tuple[Path, Path] | None = None, token: str = ""
) -> None:
    """A kubeconfig with everything inside, readable by its owner alone."""
    lines = [
        "apiVersion: v1",
        "kind: Config",
        "current-context: kubedra",
        "clusters:",
        "- name: kubedra",
        "  cluster:",
        f"    server: {server}",
        f"    certificate-authority-data: {_data(authority)}",
        "contexts:",
        "- name: kubedra",
        "  context:",
        "    cluster: kubedra",
        f"    user: {user}",
        "users:",
        f"- name: {user}",
        "  user:",
    ]
    if pair is not None:
        lines.append(f"    client-certificate-data: {_data(pair[0])}")
        lines.append(f"    client-key-data: {_data(pair[1])}")
    if token:
        lines.append(f"    token: {token}")
    write_durably(path, ("\n".join(lines) + "\n").encode(), secret=True)


def _data(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
