"""What Kubernetes' and the extensions' functions may cost: estimates by function and by overload.

Each gets the estimator, the overload, the receiver and the arguments, and answers with cost and result size, or None
for "the standard price".

Upstream counterpart: k8s.io/apiserver/pkg/cel/library/cost.go (EstimateCallCost), cel-go ext/lists.go, ext/sets.go.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import Final

from kubedra.cel.ast import Literal, Node
from kubedra.cel.estimate import ONE, ZERO, Estimator, Priced, Range, add, multiply, scale
from kubedra.cel.library.lists import MAX_INCLUDES, SORTABLE
from kubedra.cel.library.named_formats import MAX_PATTERN
from kubedra.cel.literals import UINT_MAX
from kubedra.cel.pricing import LIST_COST, PATTERN, TRAVERSAL
from kubedra.cel.types import BYTES, CIDR, IP, NAMED_FORMAT, QUANTITY, SEMVER, STRING, URL, Type

Estimate = Callable[[Estimator, str, "Node | None", "list[Node]"], "Priced | None"]


def _unit(estimator: Estimator, overload: str, target: Node | None, args: list[Node]) -> Priced:
    return ONE, None


def _list_scan(estimator: Estimator, overload: str, target: Node | None, args: list[Node]) -> Priced | None:
    if target is None:
        return None
    params = target.type.params if target.type is not None else ()
    if not params:
        return scale(estimator.size(target), TRAVERSAL), None
    each = ONE
    if params[0].kind in ("string", "bytes"):
        each = add(each, scale(estimator.element_size(target, params[0]), TRAVERSAL))
    return multiply(estimator.size(target), each), None


def _argument_scan(estimator: Estimator, overload: str, target: Node | None, args: list[Node]) -> Priced | None:
    if len(args) != 1:
        return None
    size = estimator.size(args[0])
    return scale(size, TRAVERSAL), size


def _same_size(estimator: Estimator, overload: str, target: Node | None, args: list[Node]) -> Priced | None:
    if target is None:
        return None
    size = estimator.size(target)
    return scale(size, TRAVERSAL), size


def _replace(estimator: Estimator, overload: str, target: Node | None, args: list[Node]) -> Priced | None:
    if target is None or len(args) < 2:
        return None
    size, old, new = estimator.size(target), estimator.size(args[0]), estimator.size(args[1])
    most = least = kept_most = kept_least = 0
    if old[0] == 0:
        # Replacing nothing puts the replacement around every character.
        most, kept_most = min(size[1] + 1, UINT_MAX), size[1]
    elif new[1] <= old[0]:
        kept_most = size[1]
    else:
        most = _parts(size[1], old[0])
    if old[1] == 0:
        least, kept_least = min(size[0] + 1, UINT_MAX), size[0]
    elif old[1] <= new[0]:
        kept_least = size[0]
    else:
        least = _parts(size[0], old[1])
    result = add(multiply((least, most), new), (kept_least, kept_most))
    return scale(size, 2 * TRAVERSAL), result


def _parts(size: int, part: int) -> int:
    return min(ceil(float(size) / float(part)), UINT_MAX)


def _split(estimator: Estimator, overload: str, target: Node | None, args: list[Node]) -> Priced | None:
    if target is None:
        return None
    size = estimator.size(target)
    most = size[1]
    if len(args) > 1 and isinstance(args[1], Literal) and isinstance(args[1].value, int):
        most = args[1].value & UINT_MAX
    return scale(size, 2 * TRAVERSAL), (0, most)


def _join(estimator: Estimator, overload: str, target: Node | None, args: list[Node]) -> Priced | None:
    if target is None:
        return None
    count = estimator.size(target)
    size: Range = ZERO
    params = target.type.params if target.type is not None else ()
    if params:
        size = multiply(count, estimator.element_size(target, params[0]))
    if args:
        separators = (max(count[0] - 1, 0), max(count[1] - 1, 0))
        size = add(size, multiply(estimator.size(args[0]), separators))
    return scale(size, TRAVERSAL), size


def _find(estimator: Estimator, overload: str, target: Node | None, args: list[Node]) -> Priced | None:
    if target is None or not args:
        return None
    size = estimator.size(target)
    cost = multiply(scale(add(size, ONE), TRAVERSAL), scale(estimator.size(args[0]), PATTERN))
    return cost, (0, size[1])


def _first_argument(estimator: Estimator, overload: str, target: Node | None, args: list[Node]) -> Priced | None:
    if not args:
        # cidr.ip() only reads a field.
        return ONE, None
    return scale(estimator.size(args[0]), TRAVERSAL), None


def _first_argument_twice(estimator: Estimator, overload: str, target: Node | None, args: list[Node]) -> Priced | None:
    return scale(estimator.size(args[0]), 2 * TRAVERSAL), None


def _contains_ip(estimator: Estimator, overload: str, target: Node | None, args: list[Node]) -> Priced | None:
    if target is None or not args:
        return None
    cost = scale((8, 32), TRAVERSAL)
    if overload == "cidr_contains_ip_string":
        cost = add(cost, scale(estimator.size(args[0]), TRAVERSAL))
    return cost, None


def _contains_cidr(estimator: Estimator, overload: str, target: Node | None, args: list[Node]) -> Priced | None:
    if target is None or not args:
        return None
    cost = add(add(scale((8, 32), TRAVERSAL), scale((4, 16), TRAVERSAL)), ONE)
    if overload == "cidr_contains_cidr_string":
        cost = add(cost, scale(estimator.size(args[0]), TRAVERSAL))
    return cost, None


def _validate(estimator: Estimator, overload: str, target: Node | None, args: list[Node]) -> Priced | None:
    if target is None:
        return None
    return scale(scale(estimator.size(args[0]), TRAVERSAL), MAX_PATTERN * PATTERN), None


_UNIT_EQUALITY: Final = frozenset((QUANTITY, SEMVER, IP, CIDR))


def _equality(estimator: Estimator, overload: str, target: Node | None, args: list[Node]) -> Priced | None:
    if len(args) != 2 or args[0].type != args[1].type:
        return None
    if args[0].type in _UNIT_EQUALITY:
        return ONE, None
    if args[0].type == NAMED_FORMAT:
        return scale((1, 64), TRAVERSAL), None
    if args[0].type == URL:
        size = estimator.computed_size(args[1]) or ONE
        return scale((1, size[1]), TRAVERSAL), None
    return None


def _includes(estimator: Estimator, overload: str, target: Node | None, args: list[Node]) -> Priced | None:
    return ((0, MAX_INCLUDES), None) if target is not None else None


def _table(*groups: tuple[str, Estimate]) -> dict[str, Estimate]:
    return {name: estimate for names, estimate in groups for name in names.split()}


KUBERNETES: Final[dict[str, Estimate]] = _table(
    ("isSorted sum max min indexOf lastIndexOf", _list_scan),
    ("url", _argument_scan),
    ("lowerAscii upperAscii substring trim", _same_size),
    ("replace", _replace),
    ("split", _split),
    ("join", _join),
    ("find findAll", _find),
    ("cidr isIP isCIDR ip quantity isQuantity semver isSemver", _first_argument),
    ("ip.isCanonical", _first_argument_twice),
    ("masked prefixLength family isUnspecified isLoopback isLinkLocalMulticast isLinkLocalUnicast", _unit),
    ("isGlobalUnicast format.named", _unit),
    ("containsIP", _contains_ip),
    ("containsCIDR", _contains_cidr),
    ("validate", _validate),
    ("sign asInteger isInteger asApproximateFloat isGreaterThan isLessThan compareTo add sub major minor patch", _unit),
    ("getScheme getHostname getHost getPort getEscapedPath getQuery", _unit),
    ("_==_", _equality),
    ("includes", _includes),
)


def _allocating(factor: float, size: Range) -> Priced:
    return add(add(scale(size, factor), ONE), (LIST_COST, LIST_COST)), size


def _number(node: Node, default: int) -> int:
    if isinstance(node, Literal) and node.kind == "int" and isinstance(node.value, int):
        return max(node.value, 0)
    return default


def _slice(estimator: Estimator, overload: str, target: Node | None, args: list[Node]) -> Priced | None:
    if target is None or len(args) != 2:
        return None
    size = estimator.size(target)
    length = (_number(args[1], size[1]) - _number(args[0], 0)) & UINT_MAX
    return _allocating(1, (length, length))


def _range(estimator: Estimator, overload: str, target: Node | None, args: list[Node]) -> Priced | None:
    if target is not None or len(args) != 1:
        return None
    length = _number(args[0], UINT_MAX)
    return _allocating(1, (length, length))


def _reverse(estimator: Estimator, overload: str, target: Node | None, args: list[Node]) -> Priced | None:
    return _allocating(1, estimator.size(target)) if target is not None and not args else None


def _flatten(estimator: Estimator, overload: str, target: Node | None, args: list[Node]) -> Priced | None:
    if target is None or len(args) > 1:
        return None
    depth = _number(args[0], UINT_MAX) if args else 1
    return _allocating(float(depth), estimator.size(target))


def _squared(kind: Type | None, place: int) -> Estimate:
    factor = 2.0 + (TRAVERSAL if kind in (STRING, BYTES) else 0)

    def estimate(estimator: Estimator, overload: str, target: Node | None, args: list[Node]) -> Priced | None:
        if target is None or len(args) != place:
            return None
        size = estimator.size(args[0] if place else target)
        return _allocating(factor, multiply(size, size))

    return estimate


def _sets(factor: int) -> Estimate:
    def estimate(estimator: Estimator, overload: str, target: Node | None, args: list[Node]) -> Priced | None:
        if len(args) != 2:
            return None
        return add(scale(multiply(estimator.size(args[0]), estimator.size(args[1])), factor), ONE), None

    return estimate


LISTS: Final[dict[str, Estimate]] = {
    **_table(("list_slice", _slice), ("lists_range", _range), ("list_reverse", _reverse)),
    **_table(("list_flatten list_flatten_int", _flatten)),
    "list_distinct": _squared(None, 0),
    **{f"list_{kind.name}_sort": _squared(kind, 0) for kind in SORTABLE},
    **{f"list_{kind.name}_sortByAssociatedKeys": _squared(kind, 1) for kind in SORTABLE},
}
SETS: Final[dict[str, Estimate]] = {
    "list_sets_contains_list": _sets(1),
    "list_sets_intersects_list": _sets(1),
    "list_sets_equivalent_list": _sets(2),
}
