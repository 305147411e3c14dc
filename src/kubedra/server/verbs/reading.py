"""get and list: from memory, as bytes.

A list joins stored bytes; nothing is decoded unless a selector, a table or another version asks for it.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

from kubedra.api import errors
from kubedra.api.errors import ApiError
from kubedra.server.calls import Call
from kubedra.server.requests import Response
from kubedra.server.selection import Selection, parse_selection
from kubedra.server.store import Compacted, FutureRevision, Record
from kubedra.server.verbs.versions import check_list_options, decode_continue, encode_continue, parse_revision


class Listing:
    """What a list found."""

    __slots__ = ("continue_", "records", "remaining", "revision")

    def __init__(self, records: list[Record], revision: int, continue_: str = "", remaining: int = 0) -> None:
        self.records = records
        self.revision = revision
        self.continue_ = continue_
        self.remaining = remaining


def find(call: Call) -> Record:
    """The committed record of the object. Raises 404."""
    record = call.state.store.get(call.key)
    if record is None:
        raise errors.not_found(call.served.kind, call.name)
    return record


def get(call: Call) -> Record:
    """Answers GET of one object."""
    version = call.option("resourceVersion")
    if version:
        try:
            revision = parse_revision(version)
        except ValueError as error:
            raise ApiError(500, "", str(error)) from error
        if revision > call.state.store.revision:
            raise too_large(revision, call.state.store.revision)
    return find(call)


def selection_of(call: Call) -> Selection:
    """The selectors of a request."""
    return parse_selection(
        call.served.kind, call.served.storage, call.option("labelSelector"), call.option("fieldSelector")
    )


def listing(call: Call) -> Listing:
    """Finds what GET of a collection answers."""
    check_list_options(call, watch=False)
    store = call.state.store
    selection = selection_of(call)
    limit_text, token, version = call.option("limit"), call.option("continue"), call.option("resourceVersion")
    try:
        limit = int(limit_text) if limit_text else 0
    except ValueError as error:
        raise errors.bad_request(f'strconv.ParseInt: parsing "{limit_text}": invalid syntax') from error
    if version == "0" or limit < 0:
        # No number of objects is less than none. And upstream answers these from its cache, which knows no pages.
        limit = 0
    start: tuple[str, str] | None = None
    storage, namespace = call.served.storage, call.namespace
    try:
        if token:
            if version and version != "0":
                raise errors.bad_request("specifying resource version is not allowed when using continue")
            position = decode_continue(token, call.served.kind.namespaced and not namespace)
            start = (position.namespace or namespace, position.name)
            revision = position.revision
            records = store.listing_at(storage, revision, namespace)
        else:
            revision = store.revision
            wanted = parse_revision(version)
            if wanted > revision:
                raise too_large(wanted, revision)
            if call.option("resourceVersionMatch") == "Exact" and wanted:
                revision = wanted
                records = store.listing_at(storage, revision, namespace)
            else:
                records = store.listing(storage, namespace)
    except ValueError as error:
        raise errors.bad_request(f"invalid resource version: {error}") from error
    except Compacted as error:
        if token:
            raise _expired(call, start) from error
        raise errors.expired("The resourceVersion for the provided list is too old.") from error
    except FutureRevision as error:
        raise too_large(error.requested, error.current) from error
    if start is not None:
        records = records[bisect_right(records, start, key=lambda record: (record.key.namespace, record.key.name)) :]
    if not selection.everything:
        records = [record for record in records if selection.matches(record)]
    if limit and len(records) > limit:
        remaining = len(records) - limit
        records = records[:limit]
        last = records[-1].key
        next_token = encode_continue(revision, "" if namespace else last.namespace, last.name)
        return Listing(records, revision, next_token, remaining if selection.everything else 0)
    return Listing(records, revision)


class _ExpiredList(ApiError):
    def __init__(self, token: str, message: str) -> None:
        super().__init__(410, "Expired", message)
        self.token = token

    def status(self) -> dict[str, Any]:
        return super().status() | {"metadata": {"continue": self.token}}


def _expired(call: Call, start: tuple[str, str] | None) -> ApiError:
    namespace, name = start or ("", "")
    token = encode_continue(call.state.store.revision, "" if call.namespace else namespace, name)
    return _ExpiredList(
        token,
        "The provided continue parameter is too old to display a consistent list result. You can start a new list "
        "without the continue parameter, or use the continue token in this response to retrieve the remainder of "
        "the results. Continuing with the provided token results in an inconsistent list - objects that were "
        "created, modified, or deleted between the time the first chunk was returned and now may show up in the list.",
    )


def too_large(requested: int, current: int) -> ApiError:
    """504: the revision lies in the future."""
    return ApiError(
        504,
        "Timeout",
        f"Too large resource version: {requested}, current: {current}",
        {
            "retryAfterSeconds": 1,
            "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        },
    )


def list_response(call: Call, found: Listing) -> Response:
    """The list as bytes."""
    served = call.served
    meta = f'"resourceVersion":"{found.revision}"'
    if found.continue_:
        meta += f',"continue":"{found.continue_}"'
    if found.remaining:
        meta += f',"remainingItemCount":{found.remaining}'
    head = f'{{"kind":"{served.list_kind}","apiVersion":"{served.kind.api_version}","metadata":{{{meta}}},"items":['
    item = served.item_bytes
    return Response(200, b"".join((head.encode(), b",".join([item(record) for record in found.records]), b"]}\n")))
