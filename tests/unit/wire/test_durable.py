"""Files that survive a power cut: every content is synced before its rename, every folder after."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from kubedra.wire.durable import remove_durably, remove_leftovers, write_all_durably, write_durably


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Syncs, renames and removals by name, in order."""
    made: list[str] = []
    fsync, replace, unlink = os.fsync, os.rename, os.unlink

    def name(descriptor: int) -> str:
        return Path(f"/proc/self/fd/{descriptor}").readlink().name

    def record_fsync(descriptor: int) -> None:
        made.append(f"fsync {name(descriptor)}")
        fsync(descriptor)

    def record_replace(source: Any, target: Any, **more: Any) -> None:
        made.append(f"rename {Path(source).name} {Path(target).name}")
        replace(source, target, **more)

    def record_unlink(path: Any, **more: Any) -> None:
        unlink(path, **more)
        made.append(f"unlink {Path(path).name}")

    monkeypatch.setattr(os, "fsync", record_fsync)
    monkeypatch.setattr(os, "replace", record_replace)
    monkeypatch.setattr(os, "unlink", record_unlink)
    return made


def test_a_file_is_synced_renamed_and_its_folder_synced(tmp_path: Path, calls: list[str]) -> None:
    write_durably(tmp_path / "a", b"content")
    assert calls == ["fsync .a.tmp", "rename .a.tmp a", f"fsync {tmp_path.name}"]
    assert (tmp_path / "a").read_bytes() == b"content"


def test_several_files_are_all_synced_before_one_is_renamed(tmp_path: Path, calls: list[str]) -> None:
    write_all_durably({tmp_path / "a": b"1", tmp_path / "b": b"2"})
    assert calls == [
        "fsync .a.tmp",
        "fsync .b.tmp",
        "rename .a.tmp a",
        "rename .b.tmp b",
        f"fsync {tmp_path.name}",
    ]


def test_a_removal_is_synced(tmp_path: Path, calls: list[str]) -> None:
    (tmp_path / "a").touch()
    assert remove_durably(tmp_path / "a")
    assert calls == ["unlink a", f"fsync {tmp_path.name}"]


def test_a_disk_that_fills_up_leaves_the_old_content_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_durably(tmp_path / "a", b"old")
    write = os.write
    answers = iter([3, OSError(28, "No space left on device")])

    def short(descriptor: int, data: Any) -> int:
        answer = next(answers)
        if isinstance(answer, OSError):
            raise answer
        return write(descriptor, bytes(data)[:answer])

    monkeypatch.setattr(os, "write", short)
    with pytest.raises(OSError, match="No space left"):
        write_durably(tmp_path / "a", b"newer")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_bytes() == b"old"


def test_half_written_files_are_removed_by_who_may(tmp_path: Path) -> None:
    for name in (".d.example-claim_1.json.tmp", ".e.example-claim_2.json.tmp", "d.example-claim_3.json"):
        (tmp_path / name).touch()
    remove_leftovers(tmp_path)
    assert len(list(tmp_path.iterdir())) == 3, "young ones may be under way"
    remove_leftovers(tmp_path, 0, prefix="d.example-")
    assert {path.name for path in tmp_path.iterdir()} == {".e.example-claim_2.json.tmp", "d.example-claim_3.json"}
