"""patch: the four patch types over one end, `updating.replace`.

A patch is computed on the object in the version of the request; what comes out is decoded as strictly as a PUT.
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from kubedra.api import errors, schema
from kubedra.api import fields as f
from kubedra.api.errors import ApiError
from kubedra.server.calls import Call, invalid_options
from kubedra.server.decoding.structure import Findings, TypeMismatch, walk
from kubedra.server.patch import (
    json_patch,
    merge_patch,
    read_json_patch,
    read_merge_patch,
    read_strategic_patch,
    strategic_merge,
)
from kubedra.server.registry.defaulting import apply_defaults
from kubedra.server.store import Record
from kubedra.server.verbs.owning import owned
from kubedra.server.verbs.updating import check_name, replace

Tree = dict[str, Any]
TYPES = {
    "application/json-patch+json": "json",
    "application/merge-patch+json": "merge",
    "application/strategic-merge-patch+json": "strategic",
    "application/apply-patch+yaml": "apply",
    "application/apply-patch+cbor": "cbor",
}


def patch_type(call: Call) -> str:
    """Which kind of patch the body is. Raises 415."""
    media = call.request.headers.get("content-type", "").split(";", 1)[0].strip().lower()
    kind = TYPES.get(media, "")
    if not kind or kind == "cbor":
        raise ApiError(415, "UnsupportedMediaType", "415: Unsupported Media Type")
    return kind


def check_patch_options(call: Call, kind: str) -> None:
    """`force` belongs to apply, apply needs a manager."""
    call.check_options()
    found: list[f.FieldError] = []
    if kind != "apply":
        if "force" in call.request.query:
            found.append(f.forbidden("force", "may not be specified for non-apply patch"))
    elif not call.option("fieldManager"):
        found.append(f.required("fieldManager", "is required for apply patch"))
    if found:
        raise invalid_options("PatchOptions", found)


async def patch(call: Call) -> tuple[Record, bool]:
    """Answers PATCH; the second member says that the object was created."""
    kind = patch_type(call)
    check_patch_options(call, kind)
    if kind == "apply":
        from kubedra.server.verbs.applying import apply  # it builds on this module

        return await apply(call)
    body = parse_patch(call.request.body, kind)
    return await patch_with(call, kind, body), False


async def patch_with(call: Call, kind: str, body: Any) -> Record:
    """A patch whose body is already decoded."""
    outcome = begin(call, kind, body)
    return outcome if isinstance(outcome, Record) else await outcome


def begin(call: Call, kind: str, body: Any) -> Record | asyncio.Future[Record]:
    """Everything of a patch that happens at once."""
    live = call.state.store.latest(call.key)
    if live is None:
        raise errors.not_found(call.served.kind, call.name)
    served = call.served
    clean = kind == "merge" and _clean(call, body)
    patched = compute(kind, served.from_storage(live.tree()), body, served.kind.definition)
    if not clean:
        patched = checked(call, patched)
    check_name(call, patched.setdefault("metadata", {}))
    apply_defaults(served.kind, patched, call.state.now())
    return replace(call, live, served.to_storage(owned(call, live, patched)))


def parse_patch(body: bytes, kind: str) -> Any:
    """The JSON value of a patch. Raises 400."""
    if kind == "json":
        return read_json_patch(body).value
    return (read_merge_patch(body) if kind == "merge" else read_strategic_patch(body)).value


def _word(value: Any) -> str:
    return {dict: "object", list: "array", str: "string", bool: "bool"}.get(type(value), "number")


def compute(kind: str, tree: Tree, body: Any, definition: str) -> Any:
    """The patched tree; `tree` belongs to the caller and may become part of the result."""
    if kind == "json":
        return json_patch(tree, body)
    if kind == "merge":
        return merge_patch(tree, body)
    return strategic_merge(tree, body, schema.definition(definition))


def _clean(call: Call, body: Tree) -> bool:
    """Whether a merge patch fits the schema by itself; then what it makes of a valid object does, too.

    The values of the patch get their canonical form here; its nulls (deletions) are kept by working on a copy.
    """
    if body.get("kind", call.served.kind.kind) != call.served.kind.kind or "apiVersion" in body:
        return False
    findings = Findings()
    try:
        fitted = msgspec.json.decode(msgspec.json.encode(body))
        walk(fitted, call.served.plan, findings)
    except TypeMismatch:
        return False
    if findings.strict:
        return False
    _take_over(body, fitted)
    return True


def _take_over(body: Tree, fitted: Tree) -> None:
    for name, value in fitted.items():
        given = body[name]
        if given is None:
            continue  # a deletion
        if isinstance(value, dict) and isinstance(given, dict):
            _take_over(given, value)
        elif given is not value:
            body[name] = value


def checked(call: Call, tree: Any) -> Tree:
    """The patched tree, decoded as strictly as the request asks. Raises 422 about the patch as a whole."""
    kind = call.served.kind
    if not isinstance(tree, dict):
        raise _refused(tree, f"json: cannot unmarshal {_word(tree)} into Go value of type map[string]interface {{}}")
    name, version = tree.get("kind") or kind.kind, tree.get("apiVersion") or kind.api_version
    if name != kind.kind or version != kind.api_version:
        raise _refused(tree, f'no kind "{name}" is registered for version "{version}" in scheme')
    findings = Findings()
    try:
        walk(tree, call.served.plan, findings)
    except TypeMismatch as error:
        raise _refused(tree, str(error)) from error
    if findings.strict:
        mode = call.field_validation
        if mode == "Strict":
            raise _refused(tree, f"strict decoding error: {', '.join(findings.strict)}")
        if mode != "Ignore":
            call.warnings.extend(findings.strict)
    return tree


def _refused(tree: Any, why: str) -> ApiError:
    text = msgspec.json.encode(tree).decode()
    error = f.invalid("patch", text, why)
    causes = [{"reason": error.type, "message": error.error_body(), "field": error.field}]
    return ApiError(422, "Invalid", f' "" is invalid: {error}', {"causes": causes})
