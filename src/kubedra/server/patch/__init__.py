"""The four kinds of PATCH and the bookkeeping of managed fields; pure functions on JSON trees.

Nothing here changes its input or knows of requests, stores or clocks. The verbs decode the body
(:mod:`kubedra.server.patch.documents`), call one of these on the object in the version of the request, and go on with
what comes out as with an update.
"""

from __future__ import annotations

from typing import Any

from kubedra.api.kinds import Kind
from kubedra.server.patch.apply.manager import (
    Convert,
    field_manager,
    other_version,
    without_time_changes,
)
from kubedra.server.patch.documents import (
    PatchDocument,
    PatchType,
    patch_type,
    read_apply_config,
    read_json_patch,
    read_merge_patch,
    read_strategic_patch,
)
from kubedra.server.patch.json_patch import json_patch
from kubedra.server.patch.merge_patch import create_merge_patch, merge_patch
from kubedra.server.patch.strategic_merge import strategic_merge

Tree = dict[str, Any]

__all__ = [
    "Convert",
    "PatchDocument",
    "PatchType",
    "apply",
    "create_merge_patch",
    "json_patch",
    "merge_patch",
    "other_version",
    "patch_type",
    "read_apply_config",
    "read_json_patch",
    "read_merge_patch",
    "read_strategic_patch",
    "strategic_merge",
    "update_managed_fields",
    "without_time_changes",
]


def apply(
    live: Tree | None,
    config: Tree,
    kind: Kind[Any],
    manager: str,
    now: str,
    *,
    force: bool = False,
    subresource: str = "",
    converter: Convert = other_version,
) -> Tree:
    """Server-side apply of ``config`` by ``manager``; ``live`` is None when the object does not exist.

    Both are in the version of ``kind``. Raises ``ApiError`` (409 with a cause per field in conflict).
    """
    return field_manager(kind, subresource, converter).apply(live, config, manager, now, force=force)


def update_managed_fields(
    old: Tree | None,
    new: Tree,
    kind: Kind[Any],
    manager: str,
    now: str,
    *,
    subresource: str = "",
    converter: Convert = other_version,
) -> Tree:
    """The new object with its managed fields after a create (``old`` is None), update or non-apply patch."""
    return field_manager(kind, subresource, converter).update(old, new, manager, now)
