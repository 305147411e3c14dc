"""The store at its edges: folders of others, locks, full disks, slow watchers."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kubedra.server.store import (
    Compacted,
    FolderLocked,
    ForeignFolder,
    FutureRevision,
    Key,
    Store,
    StoreUnavailable,
    WatchOverflow,
    watching,
)

POD = Key("pods", "default", "p")


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    store = Store(tmp_path / "data")
    store.start()
    yield store
    await store.stop()


async def test_a_second_server_on_the_folder_is_told_who_holds_it(store: Store, tmp_path: Path) -> None:
    with pytest.raises(FolderLocked, match=rf"in use by another kubedra server \(process {os.getpid()}\)"):
        Store(tmp_path / "data").start()


async def test_a_folder_with_foreign_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(ForeignFolder, match=r"holds things that kubedra did not make \(thesis.tex\)"):
        Store(tmp_path).start()
    assert [entry.name for entry in tmp_path.iterdir()] == ["thesis.tex"]


async def test_a_database_of_another_program_is_refused(tmp_path: Path) -> None:
    (tmp_path / "store.db").write_bytes(b"not sqlite at all, but long enough to be looked at")
    with pytest.raises(ForeignFolder):
        Store(tmp_path).start()


async def test_nobody_else_reads_the_database_or_its_log(store: Store, tmp_path: Path) -> None:
    await store.put(POD, lambda _: b"{}")
    modes = {entry.name: entry.stat().st_mode & 0o777 for entry in (tmp_path / "data").glob("store.db*")}
    assert modes == {"store.db": 0o600, "store.db-wal": 0o600, "store.db-shm": 0o600}


async def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("x")
    with pytest.raises(ForeignFolder, match="is not a folder"):
        Store(tmp_path / "data").start()


async def test_a_failed_commit_takes_everything_in_flight_with_it(store: Store) -> None:
    first = await store.put(POD, lambda _: b"{}")
    writer = store._writer
    assert writer is not None
    blocker = await _lock_database(store)
    writer._connection.execute("PRAGMA busy_timeout=1")
    writes = [store.submit_put(POD, lambda _: b'{"n":1}', expect=first.revision)]
    pending = store.latest(POD)
    assert pending is not None
    writes.append(store.submit_put(POD, lambda _: b'{"n":2}', expect=pending.revision))
    results = await asyncio.gather(*writes, return_exceptions=True)
    assert all(isinstance(result, StoreUnavailable) for result in results)
    assert store.get(POD) is first and store.latest(POD) is first
    blocker.rollback()
    blocker.close()
    again = await store.put(POD, lambda _: b'{"n":3}', expect=first.revision)
    assert store.get(POD) is again


async def _lock_database(store: Store):  # type: ignore[no-untyped-def]
    import sqlite3

    blocker = sqlite3.connect(store._folder.database, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    return blocker


def test_a_full_disk_is_one_clear_sentence(tmp_path: Path) -> None:
    program = textwrap.dedent("""
        import asyncio, resource, signal, sys
        from kubedra.server.store import Key, Store, StoreUnavailable
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        async def main():
            store = Store(sys.argv[1]); store.start()
            await store.put(Key("pods", "", "small"), lambda _: b"{}")
            resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
            try:
                await store.put(Key("pods", "", "big"), lambda _: b"x" * 1_000_000)
            except StoreUnavailable as error:
                print(error)
            assert store.get(Key("pods", "", "big")) is None
            await store.put(Key("pods", "", "after"), lambda _: b"{}")
            await store.stop()
        asyncio.run(main())
    """)
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "data")],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
        env={"PYTHONPATH": "src"},
    )
    assert done.returncode == 0, done.stderr
    assert "full" in done.stdout or "can't be written" in done.stdout


async def test_a_watcher_that_does_not_read_is_cut_off(store: Store) -> None:
    watch = store.watch("pods", since=store.revision, limit=2)
    for number in range(3):
        await store.put(Key("pods", "", f"p{number}"), lambda _: b"{}")
    with pytest.raises(WatchOverflow):
        await watch.next_batch()


async def test_history_is_bounded_and_says_so(tmp_path: Path) -> None:
    store = Store(tmp_path / "data", keep_events=8)
    store.start()
    record = await store.put(POD, lambda _: b"{}")
    first = record.revision
    for _ in range(40):
        record = await store.put(POD, lambda _: b"{}", expect=record.revision)
    with pytest.raises(Compacted):
        store.watch("pods", since=first)
    with pytest.raises(FutureRevision):
        store.watch("pods", since=record.revision + 10)
    await store.stop()
    again = Store(tmp_path / "data", keep_events=8)
    again.start()
    with pytest.raises(Compacted):
        again.watch("pods", since=first)
    assert len(again.watch("pods", since=record.revision - 3)._queue) == 3
    await again.stop()


async def test_a_watch_wakes_up_for_a_change_and_ends_when_closed(store: Store) -> None:
    watch = store.watch("pods", "default", since=store.revision)
    waiting = asyncio.create_task(watch.next_batch())
    await store.put(Key("pods", "other", "q"), lambda _: b"{}")
    await store.put(POD, lambda _: b"{}")
    assert [event.record.key for event in await waiting] == [POD]
    watch.close()
    assert await watch.next_batch() == []


async def test_a_watcher_that_does_not_read_is_cut_off_by_bytes_too(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "QUEUE_BYTES", 100_000)
    idle = store.watch("pods", since=store.revision)
    reader = store.watch("pods", since=store.revision)
    for number in range(11):
        await store.put(Key("pods", "", f"p{number}"), lambda _: b"x" * 10_000)
        assert len(await reader.next_batch()) == 1
    with pytest.raises(watching.WatchOverflow):
        await idle.next_batch()
