"""What was lost is told of: a damaged or missing database never becomes an empty cluster without a word."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kubedra.server.store import ForeignFolder, Key, Store, StoreUnavailable
from kubedra.server.store.folder import LOCK


async def used_folder(path: Path) -> Path:
    """A data folder with a database of some pages, as a server that was stopped left it."""
    store = Store(path)
    store.start()
    for number in range(50):
        await store.put(Key("pods", "default", f"p{number}"), lambda _: b"x" * 4000)
    await store.stop()
    (path / "pki").mkdir()
    return path


def garbage_inside(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(8192)
        file.write(os.urandom(65536))


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda path: os.truncate(path, 5000), "store.db is damaged"),
        (lambda path: os.truncate(path, path.stat().st_size // 2), "store.db is damaged"),
        (garbage_inside, "store.db is damaged"),
        (lambda path: os.truncate(path, 0), "store.db is empty, but pki says that there was one"),
        (lambda path: path.unlink(), "store.db is gone, but pki says that there was one"),
        (
            lambda path: path.with_name("store.db-wal").write_bytes(b"g" * 5000),
            "store.db-wal is not its write-ahead log",
        ),
    ],
)
async def test_a_damaged_database_is_one_sentence(tmp_path: Path, damage: Callable[[Path], None], said: str) -> None:
    database = await used_folder(tmp_path / "data") / "store.db"
    damage(database)
    for _ in range(2):
        with pytest.raises(StoreUnavailable, match=said):
            Store(tmp_path / "data").start()


async def test_a_missing_log_of_a_killed_server_is_told_of(tmp_path: Path) -> None:
    store = Store(tmp_path / "running")
    store.start()
    await store.put(Key("pods", "default", "p"), lambda _: b"{}")
    shutil.copytree(tmp_path / "running", tmp_path / "killed")
    await store.stop()
    (tmp_path / "killed" / "store.db-wal").rename(tmp_path / "log")
    with pytest.raises(StoreUnavailable, match="had its last writes, is gone"):
        Store(tmp_path / "killed").start()
    (tmp_path / "log").rename(tmp_path / "killed" / "store.db-wal")
    again = Store(tmp_path / "killed")
    again.start()
    assert again.get(Key("pods", "default", "p")) is not None
    await again.stop()


async def test_who_wants_to_go_on_without_the_log_can(tmp_path: Path) -> None:
    folder = await used_folder(tmp_path / "data")
    (folder / LOCK).write_bytes(b"1\nin use\n")
    with pytest.raises(StoreUnavailable, match="to go on without it"):
        Store(folder).start()
    (folder / LOCK).unlink()
    again = Store(folder)
    again.start()
    assert again.count("pods") == 50
    await again.stop()


@pytest.mark.parametrize(("name", "folder"), [("nodes", False), ("logs", False), ("cluster.json", True), (LOCK, True)])
async def test_a_file_for_a_folder_and_a_folder_for_a_file(tmp_path: Path, name: str, folder: bool) -> None:
    path = tmp_path / name
    path.mkdir() if folder else path.touch()
    with pytest.raises(ForeignFolder, match=f"{name} is a fil" if not folder else f"{name} is a folder"):
        Store(tmp_path).start()
