"""resourceVersion, limit and continue: what a reader may ask for, and upstream's refusals."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass

from kubedra.api import fields as f
from kubedra.api.errors import ApiError, bad_request
from kubedra.server.calls import Call, invalid_options


@dataclass(frozen=True, slots=True)
class Continue:
    """A decoded continue token: the revision of the list and the last key that was given out."""

    revision: int
    namespace: str
    name: str


def encode_continue(revision: int, namespace: str, name: str) -> str:
    """The token for the next page, in the form of upstream's."""
    start = f"{namespace}/{name}\0" if namespace else f"{name}\0"
    payload = json.dumps({"v": "meta.k8s.io/v1", "rv": revision, "start": start}, separators=(",", ":"))
    return base64.urlsafe_b64encode(payload.encode()).decode().rstrip("=")


def decode_continue(token: str, namespaced: bool) -> Continue:
    """Reads a token. Raises 400."""
    try:
        raw = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
        decoded = json.loads(raw)
        version, revision, start = decoded.get("v", ""), decoded.get("rv", 0), decoded.get("start", "")
    except (ValueError, AttributeError) as error:
        raise _bad_token(str(error)) from error
    if version != "meta.k8s.io/v1":
        raise _bad_token(f"server does not recognize this encoded version {version}")
    if not isinstance(revision, int) or revision == 0:
        raise _bad_token(f"incorrect encoded start resourceVersion (version {version})")
    if not isinstance(start, str) or not start or ".." in start.split("/"):
        raise _bad_token(str(start) or "empty encoded start key not valid")
    start = start.rstrip("\0")
    if namespaced and "/" in start:
        namespace, name = start.split("/", 1)
        return Continue(revision, namespace, name)
    return Continue(revision, "", start)


def _bad_token(why: str) -> ApiError:
    return bad_request(f"invalid continue token: continue key is not valid: {why}")


def parse_revision(text: str) -> int:
    """An unsigned number; 0 for empty. Raises ValueError with Go's sentence."""
    if not text:
        return 0
    if not (text.isascii() and text.isdigit()):
        raise ValueError(
            f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax'
        )
    return int(text)


def check_list_options(call: Call, *, watch: bool) -> None:
    """The rules between watch, resourceVersion, resourceVersionMatch, continue and sendInitialEvents."""
    query = call.request.query
    if not query:
        return
    version, match = query.get("resourceVersion", ""), query.get("resourceVersionMatch", "")
    token, initial = query.get("continue", ""), query.get("sendInitialEvents")
    errors: list[f.FieldError] = []
    path = "resourceVersionMatch"
    if watch:
        if initial is not None:
            if match != "NotOlderThan":
                errors.append(
                    f.forbidden(path, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")
                )
            if match and match != "NotOlderThan":
                errors.append(f.not_supported(path, match, ["NotOlderThan"]))
        elif match:
            errors.append(
                f.forbidden(path, "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided")
            )
        if token:
            errors.append(f.forbidden(path, "resourceVersionMatch is forbidden when continue is provided"))
    else:
        if initial is not None:
            errors.append(f.forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
        if match:
            if not version:
                errors.append(f.forbidden(path, "resourceVersionMatch is forbidden unless resourceVersion is provided"))
            if token:
                errors.append(f.forbidden(path, "resourceVersionMatch is forbidden when continue is provided"))
            if match not in ("Exact", "NotOlderThan"):
                errors.append(
                    f.FieldError(f.NOT_SUPPORTED, path, match, 'supported values: "Exact", "NotOlderThan", ""')
                )
            if match == "Exact" and version == "0":
                errors.append(f.forbidden(path, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'))
    if errors:
        raise invalid_options("ListOptions", errors)
