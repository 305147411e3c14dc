"""API errors: ``metav1.Status`` as an exception, with upstream's reasons, codes and texts.

Counterpart: k8s.io/apimachinery ``pkg/api/errors``. Raised by the server, by both client transports and nowhere below.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kubedra.api.fields import FieldError
    from kubedra.api.kinds import Kind


class ApiError(Exception):
    """An answer of the API that is not a success.

    ``code`` is the HTTP status, ``reason`` the machine word (``NotFound``), ``details`` what upstream puts there
    (name, group, kind, uid, causes, retryAfterSeconds).
    """

    def __init__(self, code: int, reason: str, message: str, details: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details or {}

    def status(self) -> dict[str, Any]:
        """The ``metav1.Status`` object, members in upstream's order."""
        out: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            out["reason"] = self.reason
        if self.details:
            out["details"] = self.details
        out["code"] = self.code
        return out

    @classmethod
    def from_status(cls, code: int, status: dict[str, Any]) -> ApiError:
        """The error that a ``Status`` object states; other bodies give an error with no reason."""
        return cls(
            int(status.get("code") or code),
            str(status.get("reason") or ""),
            str(status.get("message") or f"the server answered {code}"),
            status.get("details") or {},
        )

    def __repr__(self) -> str:
        return f"ApiError({self.code} {self.reason}: {self.message})"


def _resource_details(kind: Kind[Any], name: str) -> dict[str, Any]:
    details: dict[str, Any] = {"name": name} if name else {}
    if kind.group:
        details["group"] = kind.group
    details["kind"] = kind.plural
    return details


def not_found(kind: Kind[Any], name: str) -> ApiError:
    """404: no such object."""
    return ApiError(404, "NotFound", f'{kind.group_resource} "{name}" not found', _resource_details(kind, name))


def already_exists(kind: Kind[Any], name: str) -> ApiError:
    """409 on create: the name is taken."""
    text = f'{kind.group_resource} "{name}" already exists'
    return ApiError(409, "AlreadyExists", text, _resource_details(kind, name))


def conflict(kind: Kind[Any], name: str, why: str) -> ApiError:
    """409: a precondition (resourceVersion, uid) does not hold."""
    text = f'Operation cannot be fulfilled on {kind.group_resource} "{name}": {why}'
    return ApiError(409, "Conflict", text, _resource_details(kind, name))


def modified(kind: Kind[Any], name: str) -> ApiError:
    """409: somebody else wrote in between."""
    return conflict(
        kind, name, "the object has been modified; please apply your changes to the latest version and try again"
    )


def invalid(kind: Kind[Any], name: str, errors: Sequence[FieldError]) -> ApiError:
    """422 with every field error at once, in upstream's form."""
    details: dict[str, Any] = {"name": name} if name else {}
    if kind.group:
        details["group"] = kind.group
    details["kind"] = kind.kind
    details["causes"] = [{"reason": e.type, "message": e.error_body(), "field": e.field} for e in errors]
    qualified = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
    texts = list(dict.fromkeys(str(e) for e in errors))
    joined = texts[0] if len(texts) == 1 else "[" + ", ".join(texts) + "]"
    message = f'{qualified} "{name}" is invalid' + (f": {joined}" if errors else "")
    return ApiError(422, "Invalid", message, details)


def forbidden(kind: Kind[Any] | None, name: str, why: str) -> ApiError:
    """403 by admission or authorization."""
    if kind is None:
        return ApiError(403, "Forbidden", why, {})
    text = (
        f'{kind.group_resource} "{name}" is forbidden: {why}' if name else f"{kind.group_resource} is forbidden: {why}"
    )
    return ApiError(403, "Forbidden", text, _resource_details(kind, name))


def bad_request(why: str) -> ApiError:
    """400: the request itself can't be understood."""
    return ApiError(400, "BadRequest", why)


def expired(why: str) -> ApiError:
    """410: the resourceVersion or continue token is older than what is kept."""
    return ApiError(410, "Expired", why)


def internal(why: str) -> ApiError:
    """500 in upstream's form."""
    return ApiError(500, "InternalError", f"Internal error occurred: {why}", {"causes": [{"message": why}]})


def too_many_requests(why: str, retry_after: int = 0, causes: list[dict[str, Any]] | None = None) -> ApiError:
    """429: try again later (evictions that a budget blocks)."""
    details: dict[str, Any] = {}
    if causes:
        details["causes"] = causes
    if retry_after:
        details["retryAfterSeconds"] = retry_after
    return ApiError(429, "TooManyRequests", why, details)


def unauthorized() -> ApiError:
    """401."""
    return ApiError(401, "Unauthorized", "Unauthorized")
