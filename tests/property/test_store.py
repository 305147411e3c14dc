"""The store against a model: any order of writes, conflicts, compactions, restarts and crashes."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from kubedra.server.store import Compacted, Event, Key, RevisionConflict, Store, Watch

NAMES = st.sampled_from(["a", "b", "c"])
NAMESPACES = st.sampled_from(["", "ns1", "ns2"])
RESOURCES = st.sampled_from(["pods", "nodes"])


def _body(text: str) -> bytes:
    return b'{"v":"%s"}' % text.encode()


class StoreMachine(RuleBasedStateMachine):
    watches: Bundle[tuple[Watch, int]] = Bundle("watches")

    @initialize()
    def open(self) -> None:
        self.runner = asyncio.Runner()
        self.root = Path(tempfile.mkdtemp(prefix="kubedra-store-"))
        self.generation = 0
        self.folder = self.root / "0"
        self.model: dict[Key, tuple[int, bytes]] = {}
        self.history: list[tuple[int, str, Key]] = []
        self.snapshots: dict[int, dict[Key, tuple[int, bytes]]] = {}
        self.floor = 0
        self.live: list[tuple[Watch, int, list[Event]]] = []
        self._start()

    def _start(self) -> None:
        self.store = Store(self.folder, keep_events=6)
        self.runner.run(self._call(self.store.start))

    @staticmethod
    async def _call(function: object, *arguments: object) -> object:
        return function(*arguments)  # type: ignore[operator]

    @rule(resource=RESOURCES, namespace=NAMESPACES, name=NAMES, text=st.text("xyz", max_size=3))
    def put(self, resource: str, namespace: str, name: str, text: str) -> None:
        key = Key(resource, namespace, name)
        before = self.model.get(key)
        record = self.runner.run(self.store.put(key, lambda _: _body(text), expect=before[0] if before else 0))
        assert record.revision > max([entry[0] for entry in self.history], default=1)
        self.model[key] = (record.revision, record.value)
        self._changed(record.revision, "MODIFIED" if before else "ADDED", key)

    @rule(resource=RESOURCES, namespace=NAMESPACES, name=NAMES)
    def delete(self, resource: str, namespace: str, name: str) -> None:
        key = Key(resource, namespace, name)
        before = self.model.pop(key, None)
        if before is None:
            with pytest.raises(RevisionConflict):
                self.runner.run(self.store.delete(key, lambda _: b"{}", expect=7))
            return
        record = self.runner.run(self.store.delete(key, lambda _: before[1], expect=before[0]))
        self._changed(record.revision, "DELETED", key)

    def _changed(self, revision: int, kind: str, key: Key) -> None:
        self.history.append((revision, kind, key))
        self.snapshots[revision] = dict(self.model)

    @rule(resource=RESOURCES, namespace=NAMESPACES, name=NAMES, wrong=st.integers(1, 3))
    def conflict(self, resource: str, namespace: str, name: str, wrong: int) -> None:
        key = Key(resource, namespace, name)
        current = self.model.get(key, (0, b""))[0]
        with pytest.raises(RevisionConflict):
            self.runner.run(self.store.put(key, lambda _: b"{}", expect=current + wrong))

    @rule(texts=st.lists(st.text("xyz", max_size=2), min_size=2, max_size=5), name=NAMES)
    def burst(self, texts: list[str], name: str) -> None:
        """Several writers of one key: the first of those who saw the same revision wins."""
        key = Key("pods", "ns1", name)
        before = self.model.get(key)

        async def all_at_once() -> list[object]:
            writes = [
                self.store.put(key, lambda _, t=text: _body(t), expect=before[0] if before else 0)  # type: ignore[misc]
                for text in texts
            ]
            return list(await asyncio.gather(*writes, return_exceptions=True))

        results = self.runner.run(all_at_once())
        assert all(isinstance(result, RevisionConflict) for result in results[1:])
        record = results[0]
        self.model[key] = (record.revision, record.value)  # type: ignore[attr-defined]
        self._changed(record.revision, "MODIFIED" if before else "ADDED", key)  # type: ignore[attr-defined]

    @rule(resource=RESOURCES, data=st.data())
    def read_the_past(self, resource: str, data: st.DataObject) -> None:
        if not self.history:
            return
        revision = data.draw(st.sampled_from([entry[0] for entry in self.history]))
        try:
            found = self.store.listing_at(resource, revision)
        except Compacted:
            return
        expected = sorted(
            (key, version) for key, version in self.snapshots[revision].items() if key.resource == resource
        )
        assert [(r.key, (r.revision, r.value)) for r in found] == expected

    @rule(resource=RESOURCES, data=st.data())
    def watch_from(self, resource: str, data: st.DataObject) -> None:
        since = data.draw(st.sampled_from([1, *[entry[0] for entry in self.history]]))
        try:
            watch = self.store.watch(resource, since=since)
        except Compacted:
            return
        self.live.append((watch, since, []))

    @rule()
    def drain(self) -> None:
        for watch, since, seen in self.live:
            seen += self.runner.run(watch.next_batch(0))
            expected = [entry for entry in self.history if entry[0] > since and entry[2].resource == watch.resource]
            assert [(event.revision, event.type, event.record.key) for event in seen] == expected

    @rule()
    def compact(self) -> None:
        self.floor = self.store.revision
        self.store.compact(self.floor)

    @rule()
    def restart(self) -> None:
        self.live.clear()
        self.runner.run(self.store.stop())
        self._start()

    @rule()
    def crash(self) -> None:
        """What is on disk while the server still runs is what a killed server leaves behind."""
        self.live.clear()
        self.generation += 1
        copy = self.root / str(self.generation)
        copy.mkdir()
        for name in ("store.db", "store.db-wal", "kubedra-data"):
            if (self.folder / name).exists():
                shutil.copy(self.folder / name, copy / name)
        old, self.folder = self.store, copy
        self.runner.run(old.stop())
        self._start()

    @invariant()
    def current_state_is_the_model(self) -> None:
        if not hasattr(self, "store"):
            return
        for resource in ("pods", "nodes"):
            expected = sorted((key, version) for key, version in self.model.items() if key.resource == resource)
            assert [(r.key, (r.revision, r.value)) for r in self.store.listing(resource)] == expected
            for namespace in ("ns1", "ns2"):
                assert [r.key for r in self.store.listing(resource, namespace)] == [
                    key for key, _ in expected if key.namespace == namespace
                ]

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.runner.run(self.store.stop())
            self.runner.close()
            shutil.rmtree(self.root)


TestStore = StoreMachine.TestCase
TestStore.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)
