"""Strategic merge patch: merging by the schema's merge keys, with the ``$`` directives.

Lists whose field has the strategy ``merge`` merge item by item (by merge key, or as sets of scalars); all others are
replaced. ``$patch: replace|delete``, ``$retainKeys``, ``$setElementOrder/x`` and ``$deleteFromPrimitiveList/x`` steer
it. The order that comes out is upstream's, also where it is odd (new items come before the ones that the patch does
not name), because ``kubectl apply`` computes its patches against it. Inputs are never changed.

Upstream counterpart: k8s.io/apimachinery ``pkg/util/strategicpatch``.
"""

from __future__ import annotations

from typing import Any

from kubedra.api import schema
from kubedra.api.errors import ApiError
from kubedra.server.patch.element_order import ordered, require_key
from kubedra.server.patch.go_text import plain, quoted, type_name

Tree = dict[str, Any]

DIRECTIVE = "$patch"
RETAIN_KEYS = "$retainKeys"
DELETE_FROM_LIST = "$deleteFromPrimitiveList"
ELEMENT_ORDER = "$setElementOrder"

# Faults of the patch's form are the client's (400); upstream has no better than 500 for the others.
_BAD_LIST = "invalid patch format of primitive list"
_BAD_RETAIN = "invalid patch format of retainKeys"
_BAD_ORDER = "invalid patch format of setElementOrder list"


def strategic_merge(tree: Tree, patch: Tree, definition: schema.Definition | None) -> Tree:
    """Merge the patch into the tree by the definition of its kind and return the result.

    Raises ``ApiError``: 400 for a malformed directive, 422 for lists of lists, 500 where upstream answers 500
    (an item without its merge key, an unknown directive, a field that the schema does not have).
    """
    return _merge_map(tree, patch, _Scope.of_definition(definition))


class _Scope:
    """Where in the schema a map stands: a struct with fields, or a map of values, or free form."""

    def __init__(self, name: str, fields: dict[str, schema.Field]) -> None:
        self._name = name
        self._fields = fields

    @classmethod
    def of_definition(cls, definition: schema.Definition | None) -> _Scope:
        if definition is None:
            raise bad_request("strategic merge patch format is not supported")
        return cls(definition.name.rpartition(".")[2], definition.fields)

    @classmethod
    def of_field(cls, field: schema.Field | None) -> _Scope:
        if field is None:
            return cls("", {})
        definition = schema.resolve(field)
        if definition is not None:
            return cls.of_definition(definition)
        return cls("map" if field.values is not None else "RawExtension", {})

    def field(self, key: str) -> schema.Field:
        """The field of that name; only maps and lists that merge need one."""
        field = self._fields.get(key)
        if field is not None:
            return field
        if self._name == "map":
            raise server_error("merging an object in json but data type is not struct, instead is: map")
        raise server_error(f"unable to find api field in struct {self._name} for the json field {quoted(key)}")


def bad_request(text: str) -> ApiError:
    """A malformed patch."""
    return ApiError(400, "BadRequest", text)


def server_error(text: str) -> ApiError:
    """What upstream lets through as an error of its own."""
    return ApiError(500, "", text)


def _strategy(field: schema.Field) -> str:
    """``merge``, ``replace`` or empty: the strategy besides ``retainKeys``."""
    return next((part for part in field.patch_strategy.split(",") if part != "retainKeys"), "")


def _merge_map(original: Tree, patch: Tree, scope: _Scope) -> Tree:
    if DIRECTIVE in patch:
        directive = patch[DIRECTIVE]
        if directive == "replace":
            return {k: v for k, v in patch.items() if k != DIRECTIVE}
        if directive == "delete":
            return {}
        raise server_error(f"unknown patch type: {plain(directive)} in map: {plain(patch)}")
    out = _retain_keys(original, patch)
    done = _merge_ordered_lists(out, patch, scope)
    for key in sorted(patch, key=lambda k: not k.startswith(DELETE_FROM_LIST)):
        if key in done or key == RETAIN_KEYS:
            continue
        value = patch[key]
        deletes = key.startswith(DELETE_FROM_LIST)
        if deletes:
            key = _directive_target(key, DELETE_FROM_LIST, _BAD_LIST)
        if value is None:
            out.pop(key, None)
            continue
        if key not in out or not _same_type(out[key], value):
            if not deletes:
                _put(out, key, _without_nulls(value))
        elif isinstance(value, dict):
            field = scope.field(key)
            out[key] = value if _strategy(field) == "replace" else _merge_map(out[key], value, _Scope.of_field(field))
        elif isinstance(value, list):
            field = scope.field(key)
            if _strategy(field) == "merge" or deletes:
                out[key] = _merge_list(out[key], value, field, deletes)
            else:
                out[key] = value
        else:
            out[key] = value
    return out


def _same_type(a: Any, b: Any) -> bool:
    return type(a) is type(b)


def _put(out: Tree, key: str, value: Any) -> None:
    """Take the patch's value as it is, without the directives in it."""
    kept, value = _without_directives(value)
    if kept:
        out[key] = value
    else:
        out.pop(key, None)


def _without_directives(value: Any) -> tuple[bool, Any]:
    if isinstance(value, dict):
        if DIRECTIVE in value:
            return False, None
        members = {k: _without_directives(v) for k, v in value.items()}
        return True, {k: v for k, (kept, v) in members.items() if kept}
    if isinstance(value, list):
        return True, [v for kept, v in map(_without_directives, value) if kept]
    return True, value


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _without_nulls(v) for k, v in value.items() if v is not None}
    if isinstance(value, list):
        return [_without_nulls(v) for v in value]
    return value


def _retain_keys(original: Tree, patch: Tree) -> Tree:
    """A copy of the original with only the members that ``$retainKeys`` lists."""
    if RETAIN_KEYS not in patch:
        return dict(original)
    listed = patch[RETAIN_KEYS]
    if not isinstance(listed, list):
        raise bad_request(_BAD_RETAIN)
    for key, value in patch.items():
        free = value is None or key == RETAIN_KEYS or key.startswith((DELETE_FROM_LIST, ELEMENT_ORDER))
        if not free and key not in listed:
            raise bad_request(_BAD_RETAIN)
    return {k: v for k, v in original.items() if k in listed}


def _directive_target(key: str, prefix: str, fault: str) -> str:
    head, slash, rest = key.partition("/")
    if head != prefix or not slash:
        raise bad_request(fault)
    return rest


def _merge_ordered_lists(out: Tree, patch: Tree, scope: _Scope) -> set[str]:
    """Merge the lists that come with ``$setElementOrder``; returns the members of the patch that are dealt with."""
    done: set[str] = set()
    for key, order in patch.items():
        if not key.startswith(ELEMENT_ORDER):
            continue
        done.add(key)
        if not isinstance(order, list):
            raise server_error(f"expected a []interface {{}}, but received a {type_name(order)}")
        target = _directive_target(key, ELEMENT_ORDER, _BAD_ORDER)
        before, change = out.get(target), patch.get(target)
        for value, there in ((before, target in out), (change, target in patch)):
            if there and not isinstance(value, list):
                raise server_error(f"expected a []interface {{}}, but received a {type_name(value)}")
        field = scope.field(target)
        merge_key = field.patch_merge_key
        _check_order(change or [], order, merge_key)
        if before is None and change is None:
            continue
        if change is None:
            merged = before or []
        elif before is None:
            merged = _without_directives(change)[1]
        elif _strategy(field) == "merge":
            merged = _merge_list(before, change, field, deletes=False)
        else:
            merged = change
        _element_type(before or [], change or [])
        out[target] = ordered(merged, order, before or [], merge_key, order)
        done.add(target)
    return done


def _check_order(change: list[Any], order: list[Any], merge_key: str) -> None:
    """The items of the patch must come in the order that the directive states."""
    if not change or not order:
        return
    items = change
    if merge_key:
        items = [v for v in change if not (isinstance(v, dict) and DIRECTIVE in v)]
    place = 0
    for item in items:
        wanted = require_key(item, merge_key)
        while place < len(order) and require_key(order[place], merge_key) != wanted:
            place += 1
        if place >= len(order):
            raise server_error(
                f"The order in patch list:\n{plain(change)}\n doesn't match {ELEMENT_ORDER} list:\n{plain(order)}\n"
            )
        place += 1


def _element_type(*lists: list[Any]) -> type | None:
    found: type | None = None
    for items in lists:
        for item in items:
            if found is None:
                found = type(item)
                if found is list:
                    text = "the server rejected our request due to an error in our request"
                    raise ApiError(422, "Invalid", text)
            elif type(item) is not found:
                raise server_error(f"list element types are not identical: {plain(list(lists))}")
    return found


def _merge_list(original: list[Any], patch: list[Any], field: schema.Field, deletes: bool) -> list[Any]:
    if not original and not patch:
        return original
    merge_key = ""
    if _element_type(original, patch) is not dict:
        if deletes:
            return [v for v in original if v not in patch]
        merged = _unique(original + patch)
    else:
        merge_key = field.patch_merge_key
        if not merge_key:
            raise server_error("cannot merge lists without merge key for struct")
        original, patch = _apply_directives(original, patch, merge_key)
        scope = _Scope.of_field(field.items)
        merged = list(original)
        for item in patch:
            value = require_key(item, merge_key)
            at = _find(merged, merge_key, value)
            if at < 0:
                merged.append(item)
            else:
                merged[at] = _merge_map(merged[at], item, scope)
    return ordered(merged, patch, original, merge_key, patch)


def _apply_directives(original: list[Any], patch: list[Any], merge_key: str) -> tuple[list[Any], list[Any]]:
    """Carry out the items that are directives; returns the original and the patch without them."""
    rest: list[Any] = []
    replace = False
    for item in patch:
        directive = item.get(DIRECTIVE)
        if DIRECTIVE not in item:
            rest.append(item)
        elif directive == "delete":
            value = require_key(item, merge_key)
            original = [v for v in original if v.get(merge_key) != value]
        elif directive == "replace":
            replace = True
        elif directive == "merge":
            raise server_error("merging lists cannot yet be specified in the patch")
        else:
            raise server_error(f"unknown patch type: {plain(directive)} in map: {plain(item)}")
    return (rest, []) if replace else (original, rest)


def _find(items: list[Any], merge_key: str, value: Any) -> int:
    return next((i for i, v in enumerate(items) if merge_key in v and v[merge_key] == value), -1)


def _unique(items: list[Any]) -> list[Any]:
    """Without repetitions; a repeated value is filled up from the end, as upstream does (the order is visible)."""
    items = list(items)
    i = 0
    while i < len(items) - 1:
        j = i + 1
        while j < len(items):
            if items[i] == items[j]:
                last = items.pop()
                if j < len(items):
                    items[j] = last
            else:
                j += 1
        i += 1
    return items
