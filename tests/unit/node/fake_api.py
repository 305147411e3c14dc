"""A Kubernetes API in a dictionary: just enough for the node's tests to run without the server room."""

from __future__ import annotations

import asyncio
import copy
import uuid
from collections.abc import AsyncIterator, Mapping
from typing import Any

from kubedra.api import codec, errors
from kubedra.api.kinds import Kind
from kubedra.client.protocol import ListResult, Response, WatchEvent

Tree = dict[str, Any]


class FakeApi:
    """Implements the Client protocol; ``calls`` remembers every write."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str, str], Tree] = {}
        self.calls: list[tuple[str, ...]] = []
        self.patches: list[tuple[str, Tree]] = []
        self._revision = 0
        self._watches: list[tuple[Kind[Any], dict[str, str], asyncio.Queue[tuple[str, Tree]]]] = []

    # ---- help for tests ----

    def put(self, kind: Kind[Any], tree: Tree, namespace: str = "") -> Tree:
        """Stores an object as it is, with a uid if it has none."""
        meta = tree.setdefault("metadata", {})
        if namespace:
            meta["namespace"] = namespace
        meta.setdefault("uid", str(uuid.uuid4()))
        key = (kind.plural, meta.get("namespace", ""), meta["name"])
        event = "MODIFIED" if key in self.objects else "ADDED"
        self._store(kind, key, tree, event)
        return tree

    def tree(self, kind: Kind[Any], name: str, namespace: str = "") -> Tree:
        """The stored object; raises 404."""
        try:
            return self.objects[(kind.plural, namespace, name)]
        except KeyError:
            raise errors.not_found(kind, name) from None

    def events(self) -> list[tuple[str, str]]:
        """Reason and note of all events."""
        return [(tree["reason"], tree["note"]) for key, tree in self.objects.items() if key[0] == "events"]

    def _store(self, kind: Kind[Any], key: tuple[str, str, str], tree: Tree, event: str) -> None:
        self._revision += 1
        tree = {"apiVersion": kind.api_version, "kind": kind.kind, **copy.deepcopy(tree)}
        tree["metadata"]["resourceVersion"] = str(self._revision)
        if event == "DELETED":
            self.objects.pop(key, None)
        else:
            self.objects[key] = tree
        for watched, fields, queue in self._watches:
            if watched.plural == kind.plural and _matches(tree, fields):
                queue.put_nowait((event, copy.deepcopy(tree)))

    # ---- Client ----

    async def get(self, kind: Kind[Any], name: str, namespace: str = "") -> Any:
        return codec.from_tree(kind.type, self.tree(kind, name, namespace))

    async def list(self, kind: Kind[Any], namespace: str = "", **options: Any) -> ListResult[Any]:
        fields = _fields(options.get("field_selector", ""))
        items = tuple(
            codec.from_tree(kind.type, tree)
            for key, tree in self.objects.items()
            if key[0] == kind.plural and (not namespace or key[1] == namespace) and _matches(tree, fields)
        )
        return ListResult(items, str(self._revision))

    async def watch(self, kind: Kind[Any], namespace: str = "", **options: Any) -> AsyncIterator[WatchEvent[Any]]:
        queue: asyncio.Queue[tuple[str, Tree]] = asyncio.Queue()
        entry = (kind, _fields(options.get("field_selector", "")), queue)
        self._watches.append(entry)
        try:
            while True:
                event, tree = await queue.get()
                obj = codec.from_tree(kind.type, tree)
                version = tree["metadata"]["resourceVersion"]
                yield WatchEvent(event, obj, codec.encode(tree), version)  # type: ignore[arg-type]
        finally:
            self._watches.remove(entry)

    async def create(self, kind: Kind[Any], obj: Any, namespace: str = "", **options: Any) -> Any:
        tree = copy.deepcopy(codec.to_tree(obj))
        name = tree["metadata"]["name"]
        self.calls.append(("create", kind.plural, namespace, name))
        if (kind.plural, namespace, name) in self.objects:
            raise errors.already_exists(kind, name)
        return codec.from_tree(kind.type, self.put(kind, tree, namespace))

    async def update(self, kind: Kind[Any], tree: Tree, namespace: str = "", **options: Any) -> Any:
        raise NotImplementedError

    async def patch(self, kind: Kind[Any], name: str, patch: Any, namespace: str = "", **options: Any) -> Any:
        tree = copy.deepcopy(self.tree(kind, name, namespace))
        uid = (patch.get("metadata") or {}).get("uid")
        if uid and uid != tree["metadata"]["uid"]:
            raise errors.conflict(kind, name, "uid")
        self.calls.append(("patch", kind.plural, namespace, name, options.get("subresource", "")))
        self.patches.append((name, patch))
        _merge(tree, patch, options.get("patch_type", "merge") == "strategic")
        self._store(kind, (kind.plural, namespace, name), tree, "MODIFIED")
        return codec.from_tree(kind.type, self.tree(kind, name, namespace))

    async def delete(self, kind: Kind[Any], name: str, namespace: str = "", **options: Any) -> None:
        tree = self.tree(kind, name, namespace)
        if options.get("uid") not in ("", None, tree["metadata"]["uid"]):
            raise errors.conflict(kind, name, "uid")
        self.calls.append(("delete", kind.plural, namespace, name))
        self._store(kind, (kind.plural, namespace, name), tree, "DELETED")

    async def delete_collection(self, kind: Kind[Any], namespace: str = "", **options: Any) -> None:
        self.calls.append(("delete_collection", kind.plural, options.get("field_selector", "")))

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        if method == "POST" and path.endswith("/token"):
            return Response(201, {}, codec.encode({"status": {"token": "a-token"}}))
        return Response(404, {}, b"")

    async def close(self) -> None:
        return None


def _fields(selector: str) -> dict[str, str]:
    return dict(part.split("=", 1) for part in selector.split(",") if part and "!=" not in part)


def _matches(tree: Tree, fields: dict[str, str]) -> bool:
    for path, wanted in fields.items():
        value: Any = tree
        for part in path.split("."):
            value = (value or {}).get(part, "")
        if value != wanted:
            return False
    return True


def _merge(tree: Tree, patch: Tree, strategic: bool) -> None:
    for key, value in patch.items():
        if value is None:
            tree.pop(key, None)
        elif isinstance(value, dict):
            _merge(tree.setdefault(key, {}), value, strategic)
        elif strategic and key == "conditions":
            merged = {entry["type"]: entry for entry in tree.get(key, [])}
            for entry in value:
                merged[entry["type"]] = {**merged.get(entry["type"], {}), **entry}
            tree[key] = list(merged.values())
        else:
            tree[key] = value
