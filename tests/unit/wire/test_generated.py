"""The generated modules are what the .proto files say, and every service keeps its name on the wire."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kubedra.wire import dra, health

ROOT = Path(__file__).resolve().parents[3]


def test_generated_modules_are_up_to_date() -> None:
    pytest.importorskip("grpc_tools")
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "generate_wire.py"), "--check"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_names_in_the_negotiation_differ_from_names_on_the_wire_for_dra_only() -> None:
    assert dra.negotiated_name("v1") == "v1.DRAPlugin"
    assert dra.service_name("v1") == "k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin"
    assert health.service_name("v1alpha1") == "v1alpha1.DRAResourceHealth"


def test_fork_support_is_off_before_grpc_is_imported() -> None:
    code = "import os, kubedra.wire.transport; print(os.environ['GRPC_ENABLE_FORK_SUPPORT'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT / "src")
    assert done.stdout.strip() == "0"
