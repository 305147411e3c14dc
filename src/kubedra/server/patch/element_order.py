"""The order of a merged list: what the patch names in the patch's order, the rest where it stood.

Upstream counterpart: ``normalizeElementOrder`` in apimachinery ``pkg/util/strategicpatch``.
"""

from __future__ import annotations

from typing import Any

from kubedra.api.errors import ApiError
from kubedra.server.patch.go_text import plain, type_name


def require_key(item: Any, merge_key: str) -> Any:
    """The item's merge key value (the item itself in a list of scalars). Raises ``ApiError`` 500 without one."""
    if not merge_key:
        return item
    if not isinstance(item, dict):
        raise ApiError(500, "", f"expected a map[string]interface {{}}, but received a {type_name(item)}")
    if merge_key not in item:
        raise ApiError(500, "", f"map: {plain(item)} does not contain declared merge key: {merge_key}")
    return item[merge_key]


def ordered(
    merged: list[Any], named: list[Any], server_order: list[Any], merge_key: str, patch_order: list[Any]
) -> list[Any]:
    """Bring ``merged`` into order: items that ``named`` has follow ``patch_order``, others keep their place."""

    def key(item: Any) -> Any:
        return require_key(item, merge_key)

    names = [key(item) for item in named]
    patched = [item for item in merged if key(item) in names]
    others = [item for item in merged if key(item) not in names]
    order = [key(item) for item in patch_order]
    server = [key(item) for item in server_order]
    patched = _sorted(patched, order, key)
    others = _sorted(others, server, key)
    out: list[Any] = []
    i = j = 0
    while i < len(others) and j < len(patched):
        left, right = _index(server, key(others[i])), _index(server, key(patched[j]))
        if 0 <= left < right:
            out.append(others[i])
            i += 1
        else:
            out.append(patched[j])
            j += 1
    return out + patched[j:] + others[i:]


def _index(values: list[Any], value: Any) -> int:
    return values.index(value) if value in values else -1


def _sorted(items: list[Any], order: list[Any], key: Any) -> list[Any]:
    """Upstream's stable insertion sort: an item that the order does not know counts as smaller than any."""
    out = list(items)
    places = [_index(order, key(item)) for item in out]
    for i in range(1, len(out)):
        j = i
        while j > 0 and not (places[j] >= 0 and places[j - 1] >= 0 and places[j] >= places[j - 1]):
            out[j], out[j - 1] = out[j - 1], out[j]
            places[j], places[j - 1] = places[j - 1], places[j]
            j -= 1
    return out
