"""Replays recorded patches and applies of a real API server on the pure functions, without a server.

The live object of each step is what the real server had answered before; managed fields are carried on from our own
answers. What a server adds on its way (validation, defaults) is taken from the recording.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from kubedra.api import kinds, schema
from kubedra.api.errors import ApiError
from kubedra.server import patch
from kubedra.server.patch import documents
from tests.shared_cases import read_cases

Tree = dict[str, Any]

# The sequences ran within a second.
now = "2026-01-01T00:00:00Z"

# Not decided here: refused by authorization, admission, validation or the verbs.
_NOT_OURS = {400, 401, 403, 404, 405, 409, 415, 422}


# Decided after the patch: a null in a map of strings is read as "", the strategy drops statuses of freed devices.
_LATER = {"gt-patch-013 step 1 object", "gt-ssa-046 step 3 object"}


class Replay:
    """One sequence of the corpus."""

    def __init__(self, case: Tree) -> None:
        self.case = case
        self.live: dict[str, Tree] = {}
        self.entries: dict[str, list[Any]] = {}
        self.stale: set[str] = set()

    def run(self) -> Iterator[tuple[str, Any, Any]]:
        """Yield (what, ours, recorded) for each thing to compare."""
        for number, step in enumerate(self.case["steps"]):
            if step.get("cleanup"):
                continue
            for what, ours, theirs in self._step(step):
                yield f"{self.case['id']} step {number} {what}", ours, theirs

    def _step(self, step: Tree) -> Iterator[tuple[str, Any, Any]]:
        path, _, query = step["path"].partition("?")
        parts = path.strip("/").split("/")
        group, version = (parts[1], parts[2]) if parts[0] == "apis" else ("", parts[1])
        rest = parts[3:] if parts[0] == "apis" else parts[2:]
        if rest[0] == "namespaces" and len(rest) > 2:
            rest = rest[2:]
        kind = kinds.by_resource(group, version, rest[0])
        body = step["body"]
        subresource = rest[2] if len(rest) > 2 else ""
        if kind is None or subresource not in ("", "status"):
            return
        options = dict(part.split("=", 1) for part in query.split("&") if "=" in part)
        manager = options.get("fieldManager", "gtclient")
        if (
            step["method"] == "PATCH"
            and step["status"] == 422
            and "fieldManager" not in options
            and "apply" in str(step["headers"])
        ):
            return  # refused before the patch is looked at
        response = step["response"]
        name = rest[1] if len(rest) > 1 else (body or {}).get("metadata", {}).get("name", "")
        live = self.live.get(name)
        if live is not None and live["apiVersion"] != kind.api_version:
            self.stale.add(name)
        if name in self.stale:
            return  # needs a conversion
        failed = step["status"] >= 300
        status = step["status"]
        after: Tree | None = None
        if step["method"] in ("POST", "PUT") and not failed:
            new = _with_entries(response, self.entries.get(name))
            after = patch.update_managed_fields(live, new, kind, manager, now, subresource=subresource)
        elif step["method"] == "PATCH":
            content_type = step["headers"].get("Content-Type", "")
            if content_type not in documents.PATCH_TYPES:
                return
            how = documents.patch_type(content_type)
            text = body.encode() if isinstance(body, str) else json.dumps(body).encode()
            try:
                after = self._patch(how, text, kind, live, manager, now, subresource, options)
            except ApiError as err:
                yield "status", err.code, status
                ours, theirs = err.details.get("causes"), (response.get("details") or {}).get("causes")
                yield "causes", _bag(ours), _bag(theirs)
                if err.message:
                    yield "message", err.message, response["message"]
                return
            if failed:
                yield "status", 200 if status not in _NOT_OURS else status, status
                return
            if how != "apply":
                yield "object", _content(after, response, subresource), _content(response)
                # Owners are settled before the strategy has its say.
                after = patch.update_managed_fields(live, after, kind, manager, now, subresource=subresource)
            else:
                yield "object", _content(after, response, subresource), _content(response)
        if failed or after is None:
            return
        if options.get("dryRun") == "All":
            return
        entries = after["metadata"].get("managedFields") or []
        if self.case.get("managedFields"):
            yield "managedFields", _timeless(entries), _timeless(response["metadata"].get("managedFields") or [])
        self.entries[name] = entries
        self.live[name] = _with_entries(response, entries)

    def _patch(
        self,
        how: str,
        text: bytes,
        kind: Any,
        live: Tree | None,
        manager: str,
        now: str,
        subresource: str,
        options: dict[str, str],
    ) -> Tree:
        if how == "apply":
            config = documents.read_apply_config(text).value
            force = options.get("force") == "true"
            if live is None and subresource:
                raise ApiError(404, "NotFound", "")
            return patch.apply(live, config, kind, manager, now, force=force, subresource=subresource)
        if how == "json":
            document = documents.read_json_patch(text)
        elif how == "merge":
            document = documents.read_merge_patch(text)
        else:
            document = documents.read_strategic_patch(text)
        if live is None:
            raise ApiError(404, "NotFound", "")
        if how == "json":
            return patch.json_patch(live, document.value)
        if how == "merge":
            return patch.merge_patch(live, document.value)
        return patch.strategic_merge(live, document.value, schema.for_kind(kind))


def _with_entries(tree: Tree, entries: list[Any] | None) -> Tree:
    metadata = {k: v for k, v in tree["metadata"].items() if k != "managedFields"}
    if entries:
        metadata["managedFields"] = entries
    return {**tree, "metadata": metadata}


def _bag(causes: Any) -> list[tuple[str, str]]:
    return sorted((c.get("reason", ""), c.get("field", "")) for c in causes or ())


def _timeless(entries: list[Any]) -> list[Any]:
    return [{**e, "time": bool(e.get("time"))} for e in entries]


def _content(tree: Tree, like: Tree | None = None, subresource: str = "") -> Any:
    """The object without what servers add; ``like`` fills in its defaults."""
    out = {k: v for k, v in tree.items() if k not in ("metadata", "apiVersion", "kind")}
    if like is not None:
        out = _filled(out, {k: v for k, v in like.items() if k in out or k in ("spec", "status")})
        if not subresource:
            out["status"] = like.get("status")
    shown = ("labels", "annotations", "finalizers", "ownerReferences")
    out["metadata"] = {k: v for k, v in tree["metadata"].items() if k in shown}
    return _empty_free(out)


def _filled(value: Any, like: Any) -> Any:
    if isinstance(value, dict) and isinstance(like, dict):
        out = {k: _filled(v, like.get(k)) for k, v in value.items()}
        return {
            **{k: v for k, v in like.items() if k not in out and k not in ("metadata", "apiVersion", "kind")},
            **out,
        }
    if isinstance(value, list) and isinstance(like, list) and len(value) == len(like):
        return [_filled(a, b) for a, b in zip(value, like, strict=True)]
    return value


def _empty_free(value: Any) -> Any:
    if isinstance(value, dict):
        out = {k: _empty_free(v) for k, v in value.items()}
        return {k: v for k, v in out.items() if v is not None and v != {} and v != []}
    return [_empty_free(v) for v in value] if isinstance(value, list) else value


def replay(group: str) -> list[tuple[str, Any, Any]]:
    """Everything that differs in a group of the corpus."""
    found: list[tuple[str, Any, Any]] = []
    for case in read_cases("api-observed.jsonl.gz"):
        if case["group"] == group and not case.get("gates"):
            found += [item for item in Replay(case).run() if item[1] != item[2] and item[0] not in _LATER]
    return found


@pytest.mark.parametrize("group", ["ssa", "patch", "versions"])
def test_recorded_steps_come_out_the_same(group: str) -> None:
    assert replay(group) == []
