from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from kubedra.api import core_v1, kinds, meta_v1
from kubedra.api.errors import ApiError, expired
from kubedra.client.protocol import ListResult, WatchEvent
from kubedra.client.watch_cache import WatchCache
from kubedra.testing.clock import FakeClock


def pod(name: str, version: int, node: str = "") -> core_v1.Pod:
    meta = meta_v1.ObjectMeta(name=name, namespace="a", resource_version=str(version))
    return core_v1.Pod(metadata=meta, spec=core_v1.PodSpec(node_name=node))


class Script:
    """Answers lists and watches from a script; an exception in a watch is raised."""

    def __init__(self, lists: list[list[core_v1.Pod]], watches: list[list[Any]]) -> None:
        self.lists = lists
        self.watches = watches
        self.listed = 0

    async def list(self, kind: Any, namespace: str = "", **_: Any) -> ListResult[core_v1.Pod]:
        self.listed += 1
        items = self.lists.pop(0)
        return ListResult(tuple(items), "10")

    async def watch(self, kind: Any, namespace: str = "", **_: Any) -> AsyncIterator[WatchEvent[core_v1.Pod]]:
        if not self.watches:
            await asyncio.Event().wait()
        for step in self.watches.pop(0):
            if isinstance(step, Exception):
                raise step
            kind_of_event, obj = step
            yield WatchEvent(kind_of_event, obj, b"", obj.metadata.resource_version)


async def test_handlers_see_changes_in_order_and_indexes_follow() -> None:
    script = Script(
        [[pod("p", 1)]],
        [[("MODIFIED", pod("p", 11, "n1")), ("ADDED", pod("q", 12, "n1")), ("DELETED", pod("p", 13, "n1"))]],
    )
    cache: WatchCache[core_v1.Pod] = WatchCache(script, kinds.POD, clock=FakeClock())  # type: ignore[arg-type]
    cache.add_index("node", lambda p: [p.spec.node_name] if p.spec.node_name else [])
    seen: list[tuple[str | None, str | None]] = []
    cache.add_handler(
        lambda old, new: seen.append((old and old.metadata.resource_version, new and new.metadata.resource_version))
    )
    await cache.start()
    await FakeClock.settle()
    assert seen == [(None, "1"), ("1", "11"), (None, "12"), ("13", None)]
    assert [p.metadata.name for p in cache.by_index("node", "n1")] == ["q"]
    await cache.stop()


async def test_a_version_that_is_gone_is_listed_again_and_only_differences_are_told() -> None:
    clock = FakeClock()
    script = Script([[pod("p", 1), pod("q", 2)], [pod("q", 2), pod("r", 9)]], [[expired("too old")]])
    cache: WatchCache[core_v1.Pod] = WatchCache(script, kinds.POD, clock=clock)  # type: ignore[arg-type]
    seen: list[tuple[str, ...]] = []
    cache.add_handler(
        lambda old, new: seen.append((old.metadata.name if old else "", new.metadata.name if new else ""))
    )
    await cache.start()
    await clock.settle()
    assert seen == [("", "p"), ("", "q"), ("p", ""), ("", "r")]
    assert script.listed == 2
    await cache.stop()


async def test_a_lost_connection_is_taken_up_again_where_it_broke() -> None:
    clock = FakeClock()
    script = Script([[]], [[("ADDED", pod("p", 11)), ConnectionError("gone")], [("ADDED", pod("q", 12))]])
    cache: WatchCache[core_v1.Pod] = WatchCache(script, kinds.POD, clock=clock)  # type: ignore[arg-type]
    await cache.start()
    await clock.settle()
    assert len(cache) == 1
    await clock.advance(1)
    assert len(cache) == 2
    assert script.listed == 1
    await cache.stop()


async def test_a_first_list_that_is_forbidden_is_raised() -> None:
    class Refusing(Script):
        async def list(self, kind: Any, namespace: str = "", **_: Any) -> ListResult[core_v1.Pod]:
            raise ApiError(403, "Forbidden", "no")

    cache: WatchCache[core_v1.Pod] = WatchCache(Refusing([], []), kinds.POD, clock=FakeClock())  # type: ignore[arg-type]
    try:
        await cache.start()
    except ApiError as error:
        assert error.code == 403
    else:
        raise AssertionError("start must raise")


async def test_a_kind_that_is_not_served_counts_as_none_of_it() -> None:
    class Missing(Script):
        async def list(self, kind: Any, namespace: str = "", **_: Any) -> ListResult[core_v1.Pod]:
            raise ApiError(404, "NotFound", "the server could not find the requested resource")

    cache: WatchCache[core_v1.Pod] = WatchCache(Missing([], []), kinds.POD, clock=FakeClock())  # type: ignore[arg-type]
    await cache.start()
    assert cache.list() == []
    await cache.stop()
