"""The Client protocol: the only seam between the parts of kubedra and a Kubernetes API.

Two transports implement it: ``client.https.HttpsClient`` (a real kube-apiserver, or ours) and
``server.in_process.InProcessClient`` (our store without sockets). Every method raises ``ApiError`` for an answer that
is not a success and ``ConnectionError`` when there was no answer.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Literal, Protocol, TypeVar

from kubedra.api.kinds import Kind

T = TypeVar("T")
PatchType = Literal["json", "merge", "strategic", "apply"]
EventType = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]

PATCH_CONTENT_TYPES: Mapping[str, str] = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}


@dataclass(frozen=True, slots=True)
class WatchEvent(Generic[T]):
    """One event of a watch. A bookmark's object has only its resource version."""

    type: EventType
    object: T
    raw: bytes
    resource_version: str


@dataclass(frozen=True, slots=True)
class ListResult(Generic[T]):
    """A list at one revision; ``continue_`` is not empty when more is to be had."""

    items: tuple[T, ...]
    resource_version: str
    continue_: str = ""


@dataclass(frozen=True, slots=True)
class Response:
    """An answer as it came: HTTP status, headers with lower-case names, body."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Client(Protocol):
    """Reads give structs (``kind.type``), writes take plain trees or, on create, a struct.

    ``update`` takes trees only: a typed object is never PUT, since a newer server's fields would be lost
    (design, decision 7).
    """

    async def get(self, kind: Kind[T], name: str, namespace: str = "") -> T:
        """One object; 404 NotFound."""
        ...

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
        """The objects of a namespace, or of all when it is empty."""
        ...

    def watch(
        self,
        kind: Kind[T],
        namespace: str = "",
        *,
        resource_version: str = "",
        label_selector: str = "",
        field_selector: str = "",
    ) -> AsyncIterator[WatchEvent[T]]:
        """Events after a revision, with bookmarks; ends when the server ends it, ApiError 410 when it is too old."""
        ...

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
        """Create an object (tree or struct), or POST to the subresource of ``name``."""
        ...

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
        """Replace an object by a tree; 409 when its resourceVersion is not current."""
        ...

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
        """Patch an object; put uid and resourceVersion into ``patch["metadata"]`` as preconditions."""
        ...

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
        """Delete an object; 409 when a precondition does not hold."""
        ...

    async def delete_collection(
        self, kind: Kind[Any], namespace: str = "", *, label_selector: str = "", field_selector: str = ""
    ) -> None:
        """Delete all objects that match."""
        ...

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        """Any request; answers of every status come back as they are."""
        ...

    async def close(self) -> None:
        """Let go of connections; running watches end."""
        ...
