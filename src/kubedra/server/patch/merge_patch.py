"""JSON merge patch (RFC 7386).

A member that is null deletes, an object merges, everything else replaces. Nulls below a member that is new are
dropped too, as upstream does; nulls inside lists stay. Inputs are never changed, and parts that stay the same are
shared with the old tree, so that later steps can tell by identity what did not change.

Upstream counterpart: gopkg.in/evanphx/json-patch.v4 ``MergePatch``.
"""

from __future__ import annotations

from typing import Any


def merge_patch(tree: Any, patch: Any) -> Any:
    """Merge the patch into the tree and return the result."""
    if not isinstance(patch, dict):
        return patch
    if not isinstance(tree, dict):
        return _without_nulls(patch)
    out = dict(tree)
    for key, value in patch.items():
        if value is None:
            out.pop(key, None)
        elif isinstance(value, dict) and isinstance(out.get(key), dict):
            out[key] = merge_patch(out[key], value)
        else:
            out[key] = _without_nulls(value)
    return out


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _without_nulls(v) for k, v in value.items() if v is not None}
    if isinstance(value, list):
        return [_without_nulls(v) for v in value]
    return value


def create_merge_patch(old: Any, new: Any) -> dict[str, Any]:
    """The smallest merge patch that turns one object into the other (lists are replaced whole).

    Members that are null in ``new`` can't be expressed by a merge patch and count as absent.
    """
    patch: dict[str, Any] = {key: None for key in old if new.get(key) is None}
    for key, value in new.items():
        if value is None:
            continue
        before = old.get(key)
        if isinstance(before, dict) and isinstance(value, dict):
            inner = create_merge_patch(before, value)
            if inner:
                patch[key] = inner
        elif key not in old or type(before) is not type(value) or before != value:
            patch[key] = value
    return patch
