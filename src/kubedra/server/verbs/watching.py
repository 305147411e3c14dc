"""watch: committed events as JSON lines.

The bytes of an event are made once per served version and shared by all watchers. A watch starts from a revision
(410 when it is too old), from the present state (no resourceVersion, or `sendInitialEvents`), ends on
`timeoutSeconds` or when the server stops, and sends bookmarks where they are asked for.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable

import msgspec

from kubedra.api import errors
from kubedra.api.errors import ApiError
from kubedra.server.calls import Call
from kubedra.server.requests import Response
from kubedra.server.selection import Selection
from kubedra.server.serving import Served
from kubedra.server.store import Compacted, Event, Record, Watch, WatchOverflow
from kubedra.server.verbs.reading import selection_of
from kubedra.server.verbs.versions import check_list_options, parse_revision

BOOKMARK_SECONDS = 60.0
MIN_TIMEOUT = 1800


# Shows an object in the form that the client asked for: from the record and the line's event type to bytes.
Show = Callable[[Record], bytes]


class Watching:
    """An open watch: initial records, then batches of events. `close` it at the end."""

    def __init__(self, call: Call) -> None:
        check_list_options(call, watch=True)
        self.served: Served = call.served
        self.selection: Selection = selection_of(call)
        store = call.state.store
        self.store = store
        self.bookmarks = call.flag("allowWatchBookmarks")
        initial = call.request.query.get("sendInitialEvents")
        wants_initial = initial is not None and call.flag("sendInitialEvents")
        self.initial_end = wants_initial and self.bookmarks
        try:
            since = parse_revision(call.option("resourceVersion"))
        except ValueError as error:
            raise ApiError(500, "", str(error)) from error
        self.initial: list[Record] = []
        if wants_initial or (initial is None and since == 0):
            # The present state as ADDED events, then what follows.
            self.initial = [
                record
                for record in store.listing(self.served.storage, call.namespace)
                if self.selection.everything or self.selection.matches(record)
            ]
            since = store.revision
        elif since == 0:
            since = store.revision
        ahead = 0
        if since > store.revision:
            # A revision from the future: upstream waits for it, too.
            ahead, since = since, store.revision
        self.started_at = since
        wants = None if self.selection.everything else self.selection.wants
        if ahead:
            inner = wants
            wants = lambda event: event.revision > ahead and (inner is None or inner(event))  # noqa: E731
        try:
            self.watch: Watch = store.watch(self.served.storage, call.namespace, since=since, wants=wants)
        except Compacted as error:
            raise errors.expired(str(error)) from error
        timeout = call.option("timeoutSeconds")
        seconds = int(timeout) if timeout.isdigit() and timeout != "0" else MIN_TIMEOUT + random.randrange(MIN_TIMEOUT)
        self.ends_at = asyncio.get_running_loop().time() + seconds

    def bookmark(self, revision: int, annotations: dict[str, str] | None = None) -> bytes:
        """A BOOKMARK line."""
        metadata: dict[str, object] = {"resourceVersion": str(revision)}
        if annotations:
            metadata["annotations"] = annotations
        kind = self.served.kind
        tree = {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": metadata}
        return msgspec.json.encode({"type": "BOOKMARK", "object": tree}) + b"\n"

    def close(self) -> None:
        """Ends the watch."""
        self.watch.close()


def event_line(served: Served, selection: Selection, event: Event) -> bytes:
    """The line of one event, made once per version and type and kept on the event."""
    kind = event.type if selection.everything else selection.event_type(event)
    derived = event.derived
    if derived is None:
        derived = event.derived = {}
    line: bytes | None = derived.get((served.kind, kind))
    if line is None:
        line = b'{"type":"%s","object":%s}\n' % (kind.encode(), served.bytes_of(event.record))
        derived[(served.kind, kind)] = line
    return line


async def lines(watching: Watching, show: Show | None = None) -> AsyncIterator[bytes]:
    """The stream of a watch; `show` renders objects that are not wanted as they are."""
    served, selection, watch, loop = watching.served, watching.selection, watching.watch, asyncio.get_running_loop()
    shown = show or served.bytes_of
    try:
        if watching.initial:
            yield b"".join(b'{"type":"ADDED","object":%s}\n' % shown(record) for record in watching.initial)
            watching.initial = []
        if watching.initial_end:
            yield watching.bookmark(watching.started_at, {"k8s.io/initial-events-end": "true"})
        next_bookmark = loop.time() + BOOKMARK_SECONDS if watching.bookmarks else watching.ends_at + 1
        while True:
            now = loop.time()
            wait = min(watching.ends_at, next_bookmark) - now
            batch = await watch.next_batch(max(wait, 0.001))
            if batch:
                if show is None:
                    yield b"".join([event_line(served, selection, event) for event in batch])
                else:
                    yield b"".join([_shown_line(show, selection, event) for event in batch])
            elif watch.closed:
                return
            else:
                now = loop.time()
                if now >= watching.ends_at:
                    if watching.bookmarks:
                        yield watching.bookmark(watching.store.revision)
                    return
                if now >= next_bookmark:
                    yield watching.bookmark(watching.store.revision)
                    next_bookmark = now + BOOKMARK_SECONDS
    except WatchOverflow:
        status = errors.expired("the watcher fell behind; list again").status()
        yield msgspec.json.encode({"type": "ERROR", "object": status}) + b"\n"
    finally:
        watching.close()


def _shown_line(show: Show, selection: Selection, event: Event) -> bytes:
    return b'{"type":"%s","object":%s}\n' % (selection.event_type(event).encode(), show(event.record))


def watch(call: Call, show: Show | None = None) -> Response:
    """Answers a watch request."""
    return Response(200, stream=lines(Watching(call), show))
