"""Finds the cases with right answers that lie beside a checkout; tests that need them skip where they are absent."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

SHARED = Path(__file__).resolve().parents[1].parent / "shared"


def shared_folder() -> Path | None:
    """Return the folder with cases, specification and tools, or None where a checkout stands alone."""
    for candidate in (SHARED, SHARED.parent.parent / "shared"):
        if (candidate / "cases").is_dir():
            return candidate
    return None


def shared_file(name: str) -> Path:
    """Return a file below ``shared/``; skips the calling test where it is absent."""
    folder = shared_folder()
    if folder is None or not (folder / name).exists():
        pytest.skip(f"shared/{name} is not beside this checkout")
    return folder / name


def read_cases(name: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of ``shared/cases/<name>`` (gzipped, one a line)."""
    with gzip.open(shared_file(f"cases/{name}"), "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)
