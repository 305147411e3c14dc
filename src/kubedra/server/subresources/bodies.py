"""Bodies of subresources that have a kind of their own (Binding, Eviction, Scale, TokenRequest)."""

from __future__ import annotations

from typing import Any

from kubedra.api.errors import ApiError, bad_request
from kubedra.server.calls import Call
from kubedra.server.decoding.bodies import parse, report
from kubedra.server.decoding.structure import Findings, TypeMismatch, plan, walk

Tree = dict[str, Any]


def read_body(call: Call, kind: str, definition: str) -> Tree:
    """Decodes a body of `kind`, whose shape is `definition` of the schema table. Raises 400."""
    value = parse(call.request.body, call.request.headers.get("content-type", ""), kind)
    if value is None:
        value = {}
    if not isinstance(value, dict):
        raise bad_request(f"the object provided is unrecognized (must be of type {kind})")
    claimed = value.get("kind") or kind
    if claimed != kind:
        version = str(value.get("apiVersion", "")).rpartition("/")[2]
        raise bad_request(
            f'{claimed} in version "{version}" cannot be handled as a {kind}: '
            f"converting ({version}.{claimed}) to (core.{kind}): unknown conversion"
        )
    findings = Findings()
    subject = f'{kind} in version "v1" cannot be handled as a {kind}'
    try:
        walk(value, plan(definition), findings)
    except TypeMismatch as error:
        raise bad_request(f"{subject}: {error}") from error
    if findings.strict:
        report(findings.strict, call.field_validation, call.warnings, subject)
    return value


def success(code: int = 201) -> Tree:
    """The Status of a subresource that answers nothing else."""
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": code}


def server_error(message: str) -> ApiError:
    """500 without a reason, as upstream answers some wrong requests."""
    return ApiError(500, "", message)
