"""Requests and responses as the handler sees them, whichever transport they came by."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from kubedra.api.errors import ApiError
from kubedra.server.access.users import User

JSON = "application/json"


@dataclass(slots=True)
class Request:
    """One request after authentication. Header names are lower case; of repeated ones `headers` has the last."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    user: User


@dataclass(slots=True)
class Response:
    """One answer; `stream` is set for watches and logs, which have no `body`."""

    status: int = 200
    body: bytes = b""
    content_type: str = JSON
    headers: list[tuple[str, str]] = field(default_factory=list)
    stream: AsyncIterator[bytes] | None = None


def json_response(tree: Any, status: int = 200) -> Response:
    """A response with a JSON tree."""
    return Response(status, msgspec.json.encode(tree))


def error_response(error: ApiError) -> Response:
    """The `Status` of an error."""
    headers: list[tuple[str, str]] = []
    retry = error.details.get("retryAfterSeconds") if error.details else None
    if retry:
        headers.append(("Retry-After", str(retry)))
    return Response(error.code, msgspec.json.encode(error.status()) + b"\n", headers=headers)
