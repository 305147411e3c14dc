"""Turns the verbs of the Client protocol into requests, for every transport alike.

A transport implements ``request`` and ``stream``; the verbs, their query parameters and the decoding of answers stand
here once.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, TypeVar

import msgspec

from kubedra.api import codec
from kubedra.api.errors import ApiError
from kubedra.api.kinds import Kind
from kubedra.client.protocol import PATCH_CONTENT_TYPES, ListResult, PatchType, Response, WatchEvent

T = TypeVar("T")


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(name="continue", default="")


class _List(msgspec.Struct):
    metadata: _ListMeta = msgspec.field(default_factory=_ListMeta)
    items: list[msgspec.Raw] | None = None


class _EventMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""


class _EventObject(msgspec.Struct):
    metadata: _EventMeta = msgspec.field(default_factory=_EventMeta)


class _Event(msgspec.Struct):
    type: str
    object: msgspec.Raw


_decode_list = msgspec.json.Decoder(_List).decode
_decode_event = msgspec.json.Decoder(_Event).decode
_decode_event_object = msgspec.json.Decoder(_EventObject).decode


def error_from(status: int, body: bytes) -> ApiError:
    """The ApiError of an answer that is not a success."""
    try:
        tree = msgspec.json.decode(body)
    except msgspec.DecodeError:
        tree = None
    if isinstance(tree, dict) and tree.get("kind") == "Status":
        return ApiError.from_status(status, tree)
    text = body.decode("utf-8", "replace").strip() or f"the server answered {status}"
    return ApiError(status, "", text)


def parse_event(kind: Kind[T], line: bytes) -> WatchEvent[T]:
    """One line of a watch; an ERROR event is raised as ApiError."""
    event = _decode_event(line)
    raw = bytes(event.object)
    if event.type == "ERROR":
        raise error_from(500, raw)
    version = _decode_event_object(raw).metadata.resource_version
    return WatchEvent(event.type, codec.decode(kind.type, raw), raw, version)  # type: ignore[arg-type]


def _query(**parameters: str | int | bool | None) -> dict[str, str]:
    out = {}
    for key, value in parameters.items():
        if value is None or value == "" or value is False or (value == 0 and key == "limit"):
            continue
        out[key] = "true" if value is True else str(value)
    return out


class RequestingClient:
    """The verbs of the Client protocol over ``request`` and ``stream``."""

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
        raise NotImplementedError

    def stream(self, path: str, query: Mapping[str, str]) -> AsyncIterator[bytes]:
        """The lines of a watch; raises ApiError when it can't begin."""
        raise NotImplementedError

    async def _call(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: bytes | None = None,
        content_type: str = "application/json",
    ) -> bytes:
        headers = {"content-type": content_type} if body is not None else {}
        answer = await self.request(method, path, query=query, body=body, headers=headers)
        if answer.status >= 300:
            raise error_from(answer.status, answer.body)
        return answer.body

    async def get(self, kind: Kind[T], name: str, namespace: str = "") -> T:
        """One object."""
        return codec.decode(kind.type, await self._call("GET", kind.path(namespace, name), {}))

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
        query = _query(
            labelSelector=label_selector,
            fieldSelector=field_selector,
            limit=limit,
            resourceVersion=resource_version,
            **{"continue": continue_},
        )
        answer = _decode_list(await self._call("GET", kind.path(namespace), query))
        items = tuple(codec.decode(kind.type, raw) for raw in answer.items or ())
        return ListResult(items, answer.metadata.resource_version, answer.metadata.continue_)

    async def watch(
        self,
        kind: Kind[T],
        namespace: str = "",
        *,
        resource_version: str = "",
        label_selector: str = "",
        field_selector: str = "",
    ) -> AsyncIterator[WatchEvent[T]]:
        """Events after a revision, with bookmarks."""
        query = _query(
            watch=True,
            allowWatchBookmarks=True,
            resourceVersion=resource_version,
            labelSelector=label_selector,
            fieldSelector=field_selector,
        )
        async for line in self.stream(kind.path(namespace), query):
            yield parse_event(kind, line)

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
        query = _query(fieldManager=field_manager, dryRun="All" if dry_run else "")
        tree = codec.to_tree(obj)
        if not subresource:
            tree = {"apiVersion": kind.api_version, "kind": kind.kind} | tree
        path = kind.path(namespace, name if subresource else "", subresource)
        body = await self._call("POST", path, query, codec.encode(tree))
        if subresource and codec.decode(dict, body).get("kind") != kind.kind:
            # A binding or an eviction is answered with a Status: the object is read to keep the promise of the type.
            return await self.get(kind, name, namespace)
        return codec.decode(kind.type, body)

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
        query = _query(fieldManager=field_manager, dryRun="All" if dry_run else "")
        path = kind.path(namespace, tree["metadata"]["name"], subresource)
        return codec.decode(kind.type, await self._call("PUT", path, query, codec.encode(tree)))

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
        query = _query(fieldManager=field_manager, dryRun="All" if dry_run else "", force=force)
        if patch_type == "apply":
            patch = {"apiVersion": kind.api_version, "kind": kind.kind} | patch
        body = await self._call(
            "PATCH",
            kind.path(namespace, name, subresource),
            query,
            codec.encode(patch),
            PATCH_CONTENT_TYPES[patch_type],
        )
        return codec.decode(kind.type, body)

    async def delete(
        self,
        kind: Kind[Any],
        name: str,
        namespace: str = "",
        *,
        uid: str = "",
        resource_version: str = "",
        grace_period_seconds: int | None = None,
        propagation_policy: str = "",
    ) -> None:
        """Delete an object."""
        options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
        preconditions = {k: v for k, v in (("uid", uid), ("resourceVersion", resource_version)) if v}
        if preconditions:
            options["preconditions"] = preconditions
        if grace_period_seconds is not None:
            options["gracePeriodSeconds"] = grace_period_seconds
        if propagation_policy:
            options["propagationPolicy"] = propagation_policy
        await self._call("DELETE", kind.path(namespace, name), {}, codec.encode(options))

    async def delete_collection(
        self, kind: Kind[Any], namespace: str = "", *, label_selector: str = "", field_selector: str = ""
    ) -> None:
        """Delete all objects that match."""
        query = _query(labelSelector=label_selector, fieldSelector=field_selector)
        await self._call("DELETE", kind.path(namespace), query)
