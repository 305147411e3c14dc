"""Fleet files: every mistake at once, with its line and the nearest name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kubedra.drivers.simulated.fleet import FleetError, load, parse

ROOT = Path(__file__).resolve().parents[4]


def test_a_pool_has_defaults_and_vendors_have_their_real_names() -> None:
    fleet = parse("kind: Fleet\npools:\n- name: a\n  count: 2\n  devices:\n  - card: H100\n    count: 8\n")
    pool = fleet.pools[0]
    assert (pool.cpu, pool.memory, pool.hollow, pool.pods) == ("32", "128Gi", False, 110)
    entry = pool.devices[0]
    assert (entry.driver, entry.resource, entry.linked, entry.served_by) == (
        "gpu.nvidia.com",
        "nvidia.com/gpu",
        8,
        "dra",
    )
    assert [name for name, _ in fleet.nodes()] == ["a-0", "a-1"]
    assert fleet.drivers() == {"gpu.nvidia.com": ("a-0", "a-1")}


def test_names_can_be_overridden_for_a_vendor_or_an_entry() -> None:
    fleet = parse(
        "kind: Fleet\ndrivers: {nvidia: gpu.example.com}\npools:\n- name: a\n  devices:\n"
        "  - {card: L4}\n  - {card: L4, driver: own.example.com}\n"
        "  - {card: L4, servedBy: plugin, resource: x.com/gpu}\n"
    )
    assert set(fleet.drivers()) == {"gpu.example.com", "own.example.com"}
    assert fleet.pools[0].devices[2].resource == "x.com/gpu"


def test_every_mistake_is_told_at_once_with_its_line() -> None:
    text = """\
kind: Flotilla
drivers: {nvdia: gpu.example.com}
pols: []
pools:
- nmae: x
- name: Bad_Name
  count: -1
  hollow: "yes"
  cpu: lots
  labels: {a: 1, "b c": d}
  devices:
  - card: H1000
    conut: 3
    servedBy: magic
  - {card: L4, driver: "No Name", resource: noslash}
- {name: twice}
- {name: twice}
"""
    with pytest.raises(FleetError) as caught:
        parse(text, "f.yaml")
    message = str(caught.value)
    for expected in (
        'f.yaml:1: kind: must be "Fleet", not "Flotilla"',
        'f.yaml:2: drivers.nvdia: unknown vendor "nvdia"; did you mean "nvidia"?',
        'f.yaml:3: pols: unknown field "pols"; did you mean "pools"?',
        'f.yaml:5: pools[0].nmae: unknown field "nmae"; did you mean "name"?',
        "f.yaml:5: pools[0].name: is required",
        'f.yaml:6: pools[1].name: "Bad_Name" can\'t be part of a node name',
        "f.yaml:7: pools[1].count: must be a whole number from 0 to 20000, not -1",
        'f.yaml:8: pools[1].hollow: must be true or false, not "yes"',
        'f.yaml:9: pools[1].cpu: must be a quantity like 64Gi, not "lots"',
        "f.yaml:10: pools[1].labels.a: must be a string, not 1: put it in quotes",
        'f.yaml:12: pools[1].devices[0].card: no card "H1000" in the catalogue; did you mean "H100"?',
        'f.yaml:13: pools[1].devices[0].conut: unknown field "conut"; did you mean "count"?',
        'f.yaml:14: pools[1].devices[0].servedBy: must be "dra" or "plugin", not "magic"',
        'f.yaml:15: pools[1].devices[1].driver: "No Name" is no driver name',
        'f.yaml:15: pools[1].devices[1].resource: "noslash" is no resource name',
        'f.yaml:17: pools[3].name: there are two pools "twice"',
    ):
        assert expected in message, message


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "a fleet file holds one document"),
        ("[]", "must be a Fleet object"),
        ("kind: Fleet\npools: {}\n", "pools: must be a list"),
        ("kind: Fleet\npools: []\n", "at least one pool"),
        ("kind: Fleet\n", "pools: is required"),
        ("a: [", "f.yaml"),
        ("kind: Fleet\npools: [{name: a, count: 15000}, {name: b, count: 15000}]\n", "more than 20000 nodes"),
        ("kind: Fleet\npools: [{name: a, devices: [{}]}]\n", "pools[0].devices[0].card: is required"),
    ],
)
def test_hopeless_files(text: str, reason: str) -> None:
    with pytest.raises(FleetError) as caught:
        parse(text, "f.yaml")
    assert reason in str(caught.value)


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(FleetError, match="can't be read"):
        load(Path("/nowhere/fleet.yaml"))


def test_the_fleets_of_the_examples_are_right() -> None:
    demo = load(ROOT / "examples" / "demo" / "fleet.yaml")
    assert [name for name, _ in demo.nodes()] == ["old-24-0", "old-80-0", "a30-0", "a100-0", "h100-0"]
    assert demo.drivers() == {"gpu.example.com": ("a30-0", "a100-0", "h100-0")}
    assert load(ROOT / "examples" / "driver" / "fleet.yaml").pools[0].node_names() == ["bench-0"]


def test_the_reference_page_is_up_to_date() -> None:
    tool = ROOT / "tools" / "generate_fleet_reference.py"
    done = subprocess.run([sys.executable, str(tool), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
