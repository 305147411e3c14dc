"""``kubedra cel check`` as people call it: sources, versions, exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kubedra.cli.cel import cel
from kubedra.cli.check import allocations
from kubedra.cli.output import explain_failure
from tests.unit.allocation.scenarios import device, resource_slice

SLICE: dict[str, Any] = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice"}


@pytest.fixture
def dump(tmp_path: Path) -> str:
    devices = [device(f"d{i}", attributes={"kind": "gpu" if i else "nic"}) for i in range(3)]
    path = tmp_path / "slices.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [SLICE | resource_slice("s", devices)]}))
    return str(path)


def check(*arguments: str) -> Result:
    return CliRunner().invoke(cel, ["check", *arguments], standalone_mode=True)


def test_counts_devices_of_a_dump_that_holds_slices_alone(dump: str) -> None:
    result = check('device.attributes["d.example"].kind == "gpu"', "--dump", dump)
    assert result.exit_code == 0
    assert "2 of 3 devices match." in result.output
    assert check('device.attributes["d.example"].kind == "x"', "--dump", dump).exit_code == 3


def test_names_what_an_upgrade_would_change(dump: str) -> None:
    expression = 'device.attributes["d.example"].kind.includes("gpu")'
    result = check(expression, "--dump", dump, "--kubernetes-version", "1.35", "-o", "json")
    assert result.exit_code == 1
    tree = json.loads(result.output)
    assert tree["kubernetesVersion"] == "1.35"
    assert tree["upgradeWouldChange"] == [
        "With Kubernetes 1.37 it would compile.",
        "With Kubernetes 1.37 it would match 2 devices instead of 0.",
    ]
    text = check("[2, 1].sort()[0] == 1", "--dump", dump, "--kubernetes-version", "1.34").output
    assert "Checked as Kubernetes 1.34." in text
    assert "With Kubernetes 1.37 it would be accepted at admission." in text
    assert json.loads(check("true", "--offline", "-o", "json").output)["upgradeWouldChange"] == []


@pytest.mark.parametrize("spec", [3, {"driver": []}, {"devices": [{"name": 1}]}, {"devices": [{"capacity": 1}]}])
def test_a_dump_that_is_none_is_refused_in_a_sentence(tmp_path: Path, spec: Any) -> None:
    path = tmp_path / "bad.json"
    path.write_text(json.dumps({**SLICE, "metadata": {"name": "s"}, "spec": spec}))
    result = check("true", "--dump", str(path))
    assert type(result.exception).__name__ == "Refusal"
    assert "can't be read" in str(result.exception)


def test_a_dump_nested_without_end_is_refused_in_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "deep.json"
    deep = '{"a":' * 20_000 + "1" + "}" * 20_000
    path.write_text(f'{{"kind": "ResourceSlice", "apiVersion": "resource.k8s.io/v1", "spec": {deep}}}')
    for command, arguments in ((cel, ["check", "true"]), (allocations, [])):
        result = CliRunner().invoke(command, [*arguments, "--dump", str(path)], standalone_mode=False)
        assert result.exception is not None
        assert "nested too deeply" in str(explain_failure(result.exception))
