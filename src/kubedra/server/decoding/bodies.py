"""Request bodies: media type, JSON or YAML, which kind it claims to be, strictness, and upstream's refusals.

`decode` gives a tree in the version of the request with exactly the fields of the schema; what `fieldValidation`
asks for is either an error (Strict), warnings (Warn) or silence (Ignore).
"""

from __future__ import annotations

import importlib
import json
import re
from typing import Any

import msgspec

from kubedra.api import kinds
from kubedra.api.errors import ApiError, bad_request
from kubedra.api.kinds import Kind
from kubedra.server.decoding import protobuf
from kubedra.server.decoding.protobuf import MEDIA_TYPE
from kubedra.server.decoding.structure import Duplicates, Findings, TypeMismatch, plan, walk

Tree = dict[str, Any]
ACCEPTED = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
MAX_BODY = 3 * 1024 * 1024
_KEY = re.compile(rb'"\s*:')
_decode_json = msgspec.json.Decoder().decode


def parse(body: bytes, content_type: str, kind_name: str) -> Any:
    """The JSON value of a body. Raises 400 or 415."""
    media = content_type.split(";", 1)[0].strip().lower()
    if media in ("", "application/json"):
        try:
            return _decode_json(body)
        except msgspec.DecodeError:
            # The slow path gives a better sentence and reads what Go reads (a lone surrogate, big numbers).
            return _slow_json(body, kind_name)
    if media == "application/yaml":
        return _yaml(body, kind_name)
    if media == MEDIA_TYPE:
        return _protobuf(body, kind_name)
    raise ApiError(
        415,
        "UnsupportedMediaType",
        f"the body of the request was in an unknown format - accepted media types include: {ACCEPTED}",
    )


def _protobuf(body: bytes, kind_name: str) -> Any:
    subject = f"the object provided is unrecognized (must be of type {kind_name})"
    try:
        api_version, name, raw = protobuf.envelope(body)
        kind = kinds.by_api_version(api_version, name)
        definition = kind.definition if kind is not None else _OTHER_MESSAGES.get((api_version, name), "")
        if not protobuf.known(definition):
            raise bad_request(f'no kind "{name}" is registered for version "{api_version}" in scheme')
        tree = protobuf.decode(raw, definition)
    except protobuf.ProtobufError as error:
        raise bad_request(f"{subject}: {error} ({body[:30].hex()})") from error
    return {"apiVersion": api_version, "kind": name} | tree


# Bodies of subresources and options, which are no kinds of their own. DeleteOptions come in any group's version.
_OTHER_MESSAGES = {
    ("policy/v1", "Eviction"): "io.k8s.api.policy.v1.Eviction",
    ("autoscaling/v1", "Scale"): "io.k8s.api.autoscaling.v1.Scale",
    ("authentication.k8s.io/v1", "TokenRequest"): "io.k8s.api.authentication.v1.TokenRequest",
}


def _slow_json(body: bytes, kind_name: str) -> Any:
    try:
        return _whole(json.loads(body.decode("utf-8", "replace")))
    except RecursionError as error:
        raise bad_request(
            f"the object provided is unrecognized (must be of type {kind_name}): "
            "couldn't get version/kind; json parse error: exceeded max depth"
        ) from error
    except ValueError as error:
        raise bad_request(
            f"the object provided is unrecognized (must be of type {kind_name}): "
            f"couldn't get version/kind; json parse error: {_json_fault(error)} ({_excerpt(body)})"
        ) from error


def _whole(value: Any) -> Any:
    """The value without halves of surrogate pairs, which Go reads as U+FFFD and UTF-8 can't hold."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    if isinstance(value, dict):
        return {_whole(name): _whole(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_whole(item) for item in value]
    return value


def _json_fault(error: ValueError) -> str:
    if isinstance(error, json.JSONDecodeError):
        if error.pos >= len(error.doc.rstrip()):
            return "unexpected end of JSON input"
        if error.msg == "Extra data":
            return f"invalid character '{error.doc[error.pos]}' after top-level value"
        return f"{error.msg.lower()} at line {error.lineno} column {error.colno}"
    return str(error)


def _excerpt(body: bytes) -> str:
    text = body.decode("utf-8", "replace")
    return text if len(text) <= 30 else text[:30] + " ..."


def _yaml(body: bytes, kind_name: str) -> Any:
    # YAML bodies are rare (kubectl sends JSON): libyaml is loaded when the first one comes.
    yaml = importlib.import_module("kubedra.base.yaml")
    try:
        documents = yaml.load_all(body.decode("utf-8"), "body")
    except (ValueError, yaml.YamlError) as error:
        raise bad_request(
            f"the object provided is unrecognized (must be of type {kind_name}): yaml: {error} ({body[:30].hex()})"
        ) from error
    return documents[0].value if documents else None


def _pairs(pairs: list[tuple[str, Any]]) -> Tree:
    tree = dict(pairs)
    if len(tree) == len(pairs):
        return tree
    seen: set[str] = set()
    found = Duplicates(tree)
    found.twice = []
    for key, _ in pairs:
        if key in seen and key not in found.twice:
            found.twice.append(key)
        seen.add(key)
    return found


def decode(body: bytes, content_type: str, kind: Kind[Any], mode: str, warnings: list[str]) -> Tree:
    """The object in the body, of `kind`. Appends to `warnings`; raises 400, 413, 415."""
    if len(body) > MAX_BODY:
        raise ApiError(413, "RequestEntityTooLarge", f"Request entity too large: limit is {MAX_BODY}", {})
    value = parse(body, content_type, kind.kind)
    tree = _object(value, body, kind.kind)
    return check(tree, kind, mode, warnings, body if "json" in content_type or not content_type else b"")


def _object(value: Any, body: bytes, kind_name: str) -> Tree:
    if value is None:
        return {}
    if not isinstance(value, dict):
        word = {list: "array", str: "string", bool: "bool"}.get(type(value), "number")
        raise bad_request(
            f"the object provided is unrecognized (must be of type {kind_name}): couldn't get version/kind; "
            f"json parse error: json: cannot unmarshal {word} into Go value of type struct "
            '{ APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" } '
            f"({_excerpt(body)})"
        )
    for name in ("apiVersion", "kind"):
        claimed = value.get(name)
        if claimed is not None and not isinstance(claimed, str):
            word = {list: "array", dict: "object", bool: "bool"}.get(type(claimed), "number")
            raise bad_request(
                f"the object provided is unrecognized (must be of type {kind_name}): couldn't get version/kind; "
                f"json parse error: json: cannot unmarshal {word} into Go struct field .{name} of type string "
                f"({_excerpt(body)})"
            )
    return value


def check(tree: Tree, kind: Kind[Any], mode: str, warnings: list[str], body: bytes) -> Tree:
    """Checks a tree against the schema of the kind it names and against the kind that is wanted."""
    api_version = tree.get("apiVersion") or kind.api_version
    name = tree.get("kind") or kind.kind
    version = api_version.rpartition("/")[2]
    claimed = kind
    if api_version != kind.api_version or name != kind.kind:
        known = kinds.by_api_version(api_version, name)
        if known is None:
            if name.endswith("List") and kinds.by_api_version(api_version, name.removesuffix("List")):
                raise _unconvertible(name, version, kind)
            raise bad_request(
                f'{name} in version "{version}" cannot be handled as a {kind.kind}: no kind "{name}" is registered '
                f'for version "{api_version}" in scheme "k8s.io/kubernetes/pkg/api/legacyscheme/scheme.go:30"'
            )
        claimed = known
    findings = Findings(counting=bool(body) and mode != "Ignore")
    try:
        walk(tree, plan(claimed.definition), findings)
    except TypeMismatch as error:
        raise bad_request(f'{name} in version "{version}" cannot be handled as a {kind.kind}: {error}') from error
    if findings.counting and findings.keys != len(_KEY.findall(body)):
        findings = _with_duplicates(body, claimed) or findings
    if findings.strict:
        report(findings.strict, mode, warnings, f'{name} in version "{version}" cannot be handled as a {kind.kind}')
    if claimed is not kind:
        if claimed.kind != kind.kind or claimed.group != kind.group:
            raise _unconvertible(name, version, kind)
        raise bad_request(
            f"the API version in the data ({api_version}) does not match the expected API version ({kind.api_version})"
        )
    return tree


def _with_duplicates(body: bytes, kind: Kind[Any]) -> Findings | None:
    try:
        tree = json.loads(body, object_pairs_hook=_pairs)
    except (ValueError, RecursionError):
        return None
    findings = Findings()
    if isinstance(tree, dict):
        walk(tree, plan(kind.definition), findings)
    return findings


def _unconvertible(name: str, version: str, kind: Kind[Any]) -> ApiError:
    group = kind.group.split(".", 1)[0] or "core"
    return bad_request(
        f'{name} in version "{version}" cannot be handled as a {kind.kind}: '
        f"converting ({version}.{name}) to ({group}.{kind.kind}): unknown conversion"
    )


def report(strict: list[str], mode: str, warnings: list[str], subject: str) -> None:
    """Turns strict faults into an error or warnings, as `fieldValidation` asks."""
    if mode == "Strict":
        raise bad_request(f"{subject}: strict decoding error: {', '.join(strict)}")
    if mode != "Ignore":
        warnings.extend(strict)
