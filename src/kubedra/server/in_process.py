"""The Client protocol without sockets: the parts of an embedded cluster talk to the store through the same handler.

Authorization, admission, validation and storage are those of an HTTPS request. What is saved is the transport, and
decoding: readers and watchers in this process share one decoded object per version of an object.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, TypeVar

from kubedra.api import codec
from kubedra.api.errors import ApiError
from kubedra.api.kinds import Kind
from kubedra.client.protocol import PATCH_CONTENT_TYPES, ListResult, PatchType, Response, WatchEvent
from kubedra.client.requests import RequestingClient, error_from
from kubedra.server.access.users import AUTHENTICATED, User
from kubedra.server.calls import Call
from kubedra.server.handler import Handler
from kubedra.server.requests import Request
from kubedra.server.server import Server
from kubedra.server.serving import Served
from kubedra.server.store import Record, WatchOverflow
from kubedra.server.verbs import reading
from kubedra.server.verbs.watching import BOOKMARK_SECONDS, Watching

T = TypeVar("T")
_JSON = "application/json"


def decoded(served: Served, record: Record, wanted: type[T]) -> T:
    """A record as `wanted` (which may be lean), decoded once and shared by everyone in this process."""
    derived = record.derived
    if derived is None:
        derived = record.derived = {}
    key = (served.kind, wanted)
    found: T | None = derived.get(key)
    if found is None:
        found = derived[key] = codec.decode(wanted, served.bytes_of(record))
    return found


class InProcessClient(RequestingClient):
    """A client of a server in this process, as one user."""

    def __init__(
        self,
        server: Server,
        username: str = "system:admin",
        groups: tuple[str, ...] = ("system:masters",),
        *,
        user_agent: str = "kubedra",
        extra: Mapping[str, tuple[str, ...]] | None = None,
    ) -> None:
        self._server = server
        self._user = User(username, (*groups, AUTHENTICATED), extra=extra or {})
        self._headers = {"user-agent": user_agent}
        self._open: set[Watching] = set()
        self._closed = False

    @property
    def _handler(self) -> Handler:
        handler = self._server.handler
        if handler is None or self._closed:
            raise ConnectionError("the server is not running")
        return handler

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        """Send one request."""
        all_headers = self._headers | {name.lower(): value for name, value in (headers or {}).items()}
        answer = await self._handler.handle(
            Request(method, path, dict(query or {}), all_headers, body or b"", self._user)
        )
        content = answer.body
        if answer.stream is not None:
            content = b"".join([chunk async for chunk in answer.stream])
        return Response(answer.status, {name.lower(): value for name, value in answer.headers}, content)

    async def _write(
        self,
        kind: Kind[T],
        verb: str,
        namespace: str,
        name: str,
        subresource: str,
        content_type: str,
        body: bytes,
        query: dict[str, str],
    ) -> T | None:
        """A write whose answer is the shared decoded object; None where it has to go through `request`."""
        request = Request("", "", query, self._headers | {"content-type": content_type}, body, self._user)
        outcome = await self._handler.write(request, kind, verb, namespace, name, subresource)
        if outcome is None:
            return None
        return decoded(*outcome, kind.type)

    async def create(
        self,
        kind: Kind[T],
        obj: Any,
        namespace: str = "",
        *,
        name: str = "",
        subresource: str = "",
        field_manager: str = "",
        dry_run: bool = False,
    ) -> T:
        """Create an object, or POST to a subresource."""
        if not subresource:
            query = _write_query(field_manager, dry_run)
            body = codec.encode(obj)
            found = await self._write(kind, "create", namespace, "", "", _JSON, body, query)
            if found is not None:
                return found
        return await super().create(
            kind, obj, namespace, name=name, subresource=subresource, field_manager=field_manager, dry_run=dry_run
        )

    async def update(
        self,
        kind: Kind[T],
        tree: dict[str, Any],
        namespace: str = "",
        *,
        subresource: str = "",
        field_manager: str = "",
        dry_run: bool = False,
    ) -> T:
        """Replace an object by a tree."""
        query = _write_query(field_manager, dry_run)
        name = tree["metadata"]["name"]
        found = await self._write(kind, "update", namespace, name, subresource, _JSON, codec.encode(tree), query)
        if found is not None:
            return found
        return await super().update(
            kind, tree, namespace, subresource=subresource, field_manager=field_manager, dry_run=dry_run
        )

    async def patch(
        self,
        kind: Kind[T],
        name: str,
        patch: Any,
        namespace: str = "",
        *,
        patch_type: PatchType = "merge",
        subresource: str = "",
        field_manager: str = "",
        force: bool = False,
        dry_run: bool = False,
    ) -> T:
        """Patch an object."""
        query = _write_query(field_manager, dry_run)
        if force:
            query["force"] = "true"
        document = {"apiVersion": kind.api_version, "kind": kind.kind} | patch if patch_type == "apply" else patch
        found = await self._write(
            kind,
            "patch",
            namespace,
            name,
            subresource,
            PATCH_CONTENT_TYPES[patch_type],
            codec.encode(document),
            query,
        )
        if found is not None:
            return found
        return await super().patch(
            kind,
            name,
            patch,
            namespace,
            patch_type=patch_type,
            subresource=subresource,
            field_manager=field_manager,
            force=force,
            dry_run=dry_run,
        )

    async def get(self, kind: Kind[T], name: str, namespace: str = "") -> T:
        """One object."""
        call = self._reading(kind, "get", namespace, name, {})
        return decoded(call.served, reading.get(call), kind.type)

    async def list(
        self,
        kind: Kind[T],
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 0,
        continue_: str = "",
        resource_version: str = "",
    ) -> ListResult[T]:
        """The objects of a namespace, or of all."""
        query = _query(label_selector, field_selector, resource_version)
        if limit:
            query["limit"] = str(limit)
        if continue_:
            query["continue"] = continue_
        call = self._reading(kind, "list", namespace, "", query)
        found = reading.listing(call)
        items = tuple(decoded(call.served, record, kind.type) for record in found.records)
        return ListResult(items, str(found.revision), found.continue_)

    async def watch(
        self,
        kind: Kind[T],
        namespace: str = "",
        *,
        resource_version: str = "",
        label_selector: str = "",
        field_selector: str = "",
    ) -> AsyncIterator[WatchEvent[T]]:
        """Events after a revision; the objects are shared with all other readers of this process."""
        query = _query(label_selector, field_selector, resource_version)
        call = self._reading(kind, "watch", namespace, "", query)
        watching = Watching(call)
        served, selection = call.served, watching.selection
        self._open.add(watching)
        try:
            for record in watching.initial:
                yield _event("ADDED", served, record, kind.type)
            watching.initial = []
            while True:
                try:
                    batch = await watching.watch.next_batch(BOOKMARK_SECONDS)
                except WatchOverflow as error:
                    raise ApiError(410, "Expired", str(error)) from error
                for event in batch:
                    yield _event(selection.event_type(event), served, event.record, kind.type)
                if not batch:
                    if watching.watch.closed:
                        return
                    revision = str(watching.store.revision)
                    raw = watching.bookmark(watching.store.revision)
                    tree = {"metadata": {"resourceVersion": revision}}
                    yield WatchEvent("BOOKMARK", codec.from_tree(kind.type, tree), raw, revision)
        finally:
            self._open.discard(watching)
            watching.close()

    def _reading(self, kind: Kind[T], verb: str, namespace: str, name: str, query: dict[str, str]) -> Call:
        request = Request("GET", "", query, self._headers, b"", self._user)
        return self._handler.reading_call(request, kind, verb, namespace, name)

    async def stream(self, path: str, query: Mapping[str, str]) -> AsyncIterator[bytes]:
        """The lines of a watch."""
        answer = await self._handler.handle(Request("GET", path, query, self._headers, b"", self._user))
        if answer.stream is None:
            raise error_from(answer.status, answer.body)
        async for chunk in answer.stream:
            for line in chunk.splitlines():
                yield line

    async def close(self) -> None:
        """Ends the running watches of this client."""
        self._closed = True
        for watching in list(self._open):
            watching.close()


def _query(label_selector: str, field_selector: str, resource_version: str) -> dict[str, str]:
    query: dict[str, str] = {}
    if label_selector:
        query["labelSelector"] = label_selector
    if field_selector:
        query["fieldSelector"] = field_selector
    if resource_version:
        query["resourceVersion"] = resource_version
    return query


def _write_query(field_manager: str, dry_run: bool) -> dict[str, str]:
    query: dict[str, str] = {}
    if field_manager:
        query["fieldManager"] = field_manager
    if dry_run:
        query["dryRun"] = "All"
    return query


def _event(type_: Any, served: Served, record: Record, wanted: type[T]) -> WatchEvent[T]:
    return WatchEvent(type_, decoded(served, record, wanted), served.bytes_of(record), str(record.revision))
