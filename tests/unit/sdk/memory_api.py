"""A Kubernetes API small enough to read, for tests of the SDK: objects, revisions, watches, and faults on demand."""

from __future__ import annotations

import asyncio
import copy
import uuid
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec

from kubedra.api import codec, errors
from kubedra.api.kinds import Kind
from kubedra.client.protocol import ListResult, WatchEvent

Tree = dict[str, Any]


class MemoryApi:
    """Implements what the SDK uses of the Client protocol."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str, str], Tree] = {}
        self.revision = 0
        self.log: list[tuple[str, Tree, int]] = []
        self.writes: list[tuple[str, str, str]] = []
        self.change: Callable[[Tree], None] = lambda tree: None
        self.fault: Callable[[str, str], Exception | None] = lambda verb, name: None
        self._moved = asyncio.Condition()

    # ---- reading ----

    async def get(self, kind: Kind[Any], name: str, namespace: str = "") -> Any:
        self._fail("get", name)
        tree = self.objects.get((kind.plural, namespace, name))
        if tree is None:
            raise errors.not_found(kind, name)
        return codec.from_tree(kind.type, tree)

    async def list(self, kind: Kind[Any], namespace: str = "", **options: Any) -> ListResult[Any]:
        found = [
            codec.from_tree(kind.type, tree)
            for (plural, _, _), tree in self.objects.items()
            if plural == kind.plural and _selected(tree, options.get("field_selector", ""))
        ]
        return ListResult(tuple(found), str(self.revision))

    async def watch(
        self, kind: Kind[Any], namespace: str = "", *, resource_version: str = "", **options: Any
    ) -> AsyncIterator[WatchEvent[Any]]:
        position = int(resource_version)
        while True:
            for verb, tree, revision in self.log[position:]:
                if revision <= position:
                    continue
                position = revision
                if tree["kind"] == kind.kind and _selected(tree, options.get("field_selector", "")):
                    obj = codec.from_tree(kind.type, tree)
                    yield WatchEvent(verb, obj, msgspec.json.encode(tree), str(revision))  # type: ignore[arg-type]
            async with self._moved:
                if self.revision <= position:
                    await self._moved.wait()

    # ---- writing ----

    async def create(self, kind: Kind[Any], obj: Any, namespace: str = "", **_: Any) -> Any:
        tree = copy.deepcopy(codec.to_tree(obj))
        meta = tree.setdefault("metadata", {})
        if not meta.get("name"):
            meta["name"] = meta["generateName"] + uuid.uuid4().hex[:5]
        self._fail("create", meta["name"])
        if (kind.plural, namespace, meta["name"]) in self.objects:
            raise errors.already_exists(kind, meta["name"])
        if namespace:
            meta["namespace"] = namespace
        tree |= {"apiVersion": kind.api_version, "kind": kind.kind}
        meta.setdefault("uid", str(uuid.uuid4()))
        self.change(tree)
        return await self._store("ADDED", "create", kind, tree)

    async def patch(self, kind: Kind[Any], name: str, patch: Any, namespace: str = "", **_: Any) -> Any:
        self._fail("patch", name)
        old = self.objects.get((kind.plural, namespace, name))
        if old is None:
            raise errors.not_found(kind, name)
        meta = patch.get("metadata", {})
        if any(key in meta and meta[key] != old["metadata"][key] for key in ("uid", "resourceVersion")):
            raise errors.modified(kind, name)
        new = _merge(copy.deepcopy(old), patch)
        self.change(new)
        return await self._store("MODIFIED", "patch", kind, new)

    async def delete(self, kind: Kind[Any], name: str, namespace: str = "", **options: Any) -> None:
        self._fail("delete", name)
        tree = self.objects.get((kind.plural, namespace, name))
        if tree is None:
            raise errors.not_found(kind, name)
        if options.get("uid", tree["metadata"]["uid"]) != tree["metadata"]["uid"]:
            raise errors.modified(kind, name)
        del self.objects[(kind.plural, namespace, name)]
        await self._store("DELETED", "delete", kind, copy.deepcopy(tree), keep=False)

    async def close(self) -> None:
        return None

    # ---- for tests ----

    def all(self, kind: Kind[Any]) -> list[Any]:
        """The objects of a kind by name."""
        found = sorted((key, tree) for key, tree in self.objects.items() if key[0] == kind.plural)
        return [codec.from_tree(kind.type, tree) for _, tree in found]

    def _fail(self, verb: str, name: str) -> None:
        error = self.fault(verb, name)
        if error is not None:
            raise error

    async def _store(self, event: str, verb: str, kind: Kind[Any], tree: Tree, keep: bool = True) -> Any:
        self.revision += 1
        tree["metadata"]["resourceVersion"] = str(self.revision)
        if keep:
            self.objects[(kind.plural, tree["metadata"].get("namespace", ""), tree["metadata"]["name"])] = tree
        self.log.append((event, tree, self.revision))
        self.writes.append((verb, kind.kind, tree["metadata"]["name"]))
        async with self._moved:
            self._moved.notify_all()
        return codec.from_tree(kind.type, tree)


def _selected(tree: Tree, selector: str) -> bool:
    for term in filter(None, selector.split(",")):
        path, _, wanted = term.partition("=")
        value: Any = tree
        for part in path.split("."):
            value = value.get(part, {}) if isinstance(value, dict) else {}
        if value != wanted:
            return False
    return True


def _merge(tree: Tree, patch: Tree) -> Tree:
    for key, value in patch.items():
        if value is None:
            tree.pop(key, None)
        elif isinstance(value, dict):
            tree[key] = _merge(tree.get(key) or {}, value)
        else:
            tree[key] = value
    return tree
