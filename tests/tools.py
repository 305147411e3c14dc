"""Programs that some tests need: where one is missing they skip, except in continuous integration, where they fail."""

from __future__ import annotations

import os
import shutil

import pytest


def require_tool(name: str) -> str:
    """The path of a program; skips the test (or fails it with CI=true) where it is absent."""
    path = shutil.which(name)
    if path is None:
        text = f"{name} is not on this machine"
        if os.environ.get("CI") == "true":
            pytest.fail(f"{text}, and with CI=true nothing that needs it may be skipped")
        pytest.skip(text)
    return path


def require_root() -> None:
    """Skips the test (or fails it with CI=true) for other users than root."""
    if os.geteuid() != 0:
        if os.environ.get("CI") == "true":
            pytest.fail("this test needs root, and with CI=true it may not be skipped")
        pytest.skip("this test needs root")
