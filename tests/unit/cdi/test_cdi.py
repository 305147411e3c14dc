"""CDI files are written whole, read leniently, resolved strictly and applied in order."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from kubedra.cdi.apply import ContainerConfig, apply
from kubedra.cdi.folder import SpecFolder, UnresolvedDevices
from kubedra.cdi.spec import (
    ContainerEdits,
    Device,
    DeviceNode,
    Hook,
    InvalidSpec,
    Mount,
    Spec,
    parse_qualified_name,
    qualified_name,
    read_spec,
    validate,
    write_spec,
)
from kubedra.wire.durable import remove_leftovers, write_durably


def spec(kind: str = "example.com/gpu", *names: str) -> Spec:
    return Spec(kind, devices=tuple(Device(name, ContainerEdits(env=(f"D_{name}=1",))) for name in names or ("a",)))


def test_a_spec_survives_its_file_and_has_the_names_of_the_format() -> None:
    edits = ContainerEdits(
        env=("A=b",),
        device_nodes=(DeviceNode("/dev/x", "/dev/y", "c", 1, 3, 0o666, "rw", 0, 0),),
        mounts=(Mount("/h", "/c", ("ro", "bind")),),
        hooks=(Hook("createContainer", "/bin/true", ("true",), timeout=3),),
        additional_gids=(44,),
    )
    whole = Spec("example.com/gpu", "0.7.0", (Device("a", edits, {"note": "x"}),), ContainerEdits(env=("B=c",)))
    assert read_spec(write_spec(whole)) == whole
    tree = msgspec.json.decode(write_spec(whole))
    assert tree["cdiVersion"] == "0.7.0"
    assert tree["devices"][0]["containerEdits"]["additionalGids"] == [44]
    assert tree["devices"][0]["containerEdits"]["deviceNodes"][0]["hostPath"] == "/dev/y"
    assert msgspec.json.decode(write_spec(spec()))["cdiVersion"] == "0.5.0"


def test_validation_says_every_mistake_at_once() -> None:
    broken = Spec(
        "no-slash",
        "9.9.9",
        (
            Device("-bad", ContainerEdits(env=("novalue",), device_nodes=(DeviceNode("", type="x", permissions="q"),))),
            Device("a"),
            Device("a", ContainerEdits(mounts=(Mount("", "/c"),), hooks=(Hook("sometimes", ""),))),
        ),
    )
    assert len(validate(broken)) == 12
    with pytest.raises(InvalidSpec, match=r"unknown version.*vendor/class.*duplicate device"):
        write_spec(broken)
    with pytest.raises(InvalidSpec, match=r"at least one device"):
        read_spec(b'{"cdiVersion":"0.5.0","kind":"a/b","devices":[]}')
    with pytest.raises(InvalidSpec):
        read_spec(b"{")


def test_qualified_names() -> None:
    assert qualified_name("gpu.example.com/gpu", "0-a_b.c:d") == "gpu.example.com/gpu=0-a_b.c:d"
    assert parse_qualified_name("vendor.com/class=dev") == ("vendor.com/class", "dev")
    for bad in ("dev", "vendor=dev", "vendor/class=", "1vendor/class=a", "v/c=-a"):
        with pytest.raises(InvalidSpec):
            parse_qualified_name(bad)


def test_resolving_takes_each_device_and_each_file_once(tmp_path: Path) -> None:
    folder = SpecFolder(tmp_path)
    folder.write(
        "one", msgspec.structs.replace(spec("v.com/gpu", "a", "b"), container_edits=ContainerEdits(env=("F=1",)))
    )
    folder.write("two", spec("v.com/nic", "a"))
    edits = folder.resolve(["v.com/gpu=a", "v.com/nic=a", "v.com/gpu=b", "v.com/gpu=a"])
    assert edits.env == ("F=1", "D_a=1", "D_a=1", "D_b=1")
    assert folder.names() == {"one", "two"}
    assert folder.remove("two") and not folder.remove("two")
    with pytest.raises(UnresolvedDevices, match=r"unresolvable CDI devices v\.com/nic=a$"):
        folder.resolve(["v.com/nic=a"])


def test_a_broken_file_hides_nothing_and_is_named_when_a_device_is_missing(tmp_path: Path) -> None:
    folder = SpecFolder(tmp_path)
    folder.write("good", spec())
    (tmp_path / "bad.json").write_text("{")
    assert folder.resolve(["example.com/gpu=a"]).env == ("D_a=1",)
    with pytest.raises(UnresolvedDevices, match=r"example\.com/gpu=z \(bad\.json: "):
        folder.resolve(["example.com/gpu=z"])
    (tmp_path / "bad.json").write_bytes(write_spec(spec("example.com/gpu", "z")))
    assert folder.resolve(["example.com/gpu=z"]).env == ("D_z=1",)


def test_a_device_in_two_files_is_refused(tmp_path: Path) -> None:
    folder = SpecFolder(tmp_path)
    folder.write("one", spec())
    folder.write("two", spec())
    with pytest.raises(UnresolvedDevices, match=r"defined in one\.json; .*defined in two\.json"):
        folder.resolve(["example.com/gpu=a"])


def test_edits_replace_what_has_the_same_name_and_mounts_go_by_depth() -> None:
    config = ContainerConfig({"A": "old", "P": "q"}, (Mount("/h1", "/deep/below"), Mount("/h2", "/x")))
    edits = ContainerEdits(
        env=("A=new=1",),
        mounts=(Mount("/h3", "/x"), Mount("/h4", "/deep")),
        device_nodes=(DeviceNode("/dev/a"), DeviceNode("/dev/a", "/dev/b")),
        additional_gids=(0, 44, 44),
        hooks=(Hook("poststop", "/bin/true"),),
    )
    done = apply(edits, config)
    assert done.env == {"A": "new=1", "P": "q"}
    assert [mount.container_path for mount in done.mounts] == ["/x", "/deep", "/deep/below"]
    assert done.mounts[0].host_path == "/h3"
    assert done.device_nodes == (DeviceNode("/dev/a", "/dev/b"),)
    assert done.additional_gids == (44,) and done.hooks == edits.hooks


def test_durable_writes_replace_whole_files_and_leave_nothing_half(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    write_durably(path, b"one")
    write_durably(path, b"two", 0o644)
    assert path.read_bytes() == b"two" and path.stat().st_mode & 0o777 == 0o644
    (tmp_path / ".g.json.tmp").write_bytes(b"half")
    os.utime(tmp_path / ".g.json.tmp", (1, 1))
    (tmp_path / ".h.json.tmp").write_bytes(b"being written")
    remove_leftovers(tmp_path)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [".h.json.tmp", "f.json"]
