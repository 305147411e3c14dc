"""What calls cost when they run, by upstream's rules.

A price is a function of the overload (empty where the call was left to run-time dispatch), the argument values and
the result; a failed call is charged like a value of size one. Estimates before running are in estimate.py; the two
must move together.

Upstream counterpart: cel-go interpreter/runtimecost.go, ext/lists.go and ext/sets.go (trackers),
k8s.io/apiserver/pkg/cel/library/cost.go (CallCost).
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import Final

from kubedra.base.quantity import Quantity
from kubedra.base.semver import Semver
from kubedra.cel import values
from kubedra.cel.environment import ActualCost
from kubedra.cel.library.lists import SORTABLE
from kubedra.cel.library.named_formats import pattern_size
from kubedra.cel.values import Cidr, PointerQuantity, Url, Value, size

TRAVERSAL: Final = 0.1
PATTERN: Final = 0.25
LIST_COST: Final = 10
MAP_COST: Final = 30
STRUCT_COST: Final = 40


def _one(overload: str, args: list[Value], result: Value) -> int:
    return 1


def _scan(overload: str, args: list[Value], result: Value) -> int:
    return ceil(size(args[0]) * TRAVERSAL)


def _scan_twice(overload: str, args: list[Value], result: Value) -> int:
    return ceil(size(args[0]) * 2 * TRAVERSAL)


def _built(overload: str, args: list[Value], result: Value) -> int:
    return ceil(size(result) * 2 * TRAVERSAL)


def _pattern(overload: str, args: list[Value], result: Value) -> int:
    return ceil((1.0 + size(args[0])) * TRAVERSAL) * ceil(size(args[1]) * PATTERN)


def _validation(overload: str, args: list[Value], result: Value) -> int:
    return ceil((1.0 + size(args[1])) * TRAVERSAL) * ceil(pattern_size(args[0].name) * PATTERN)


def _traverse(value: Value) -> int:
    kind = value.__class__
    if kind is str:
        return int(len(value.encode("utf-8", "surrogatepass")) * TRAVERSAL)
    if kind is bytes:
        return int(len(value) * TRAVERSAL)
    if kind is list:
        return sum(_traverse(item) for item in value)
    if kind is dict or kind is values.DefaultMap:
        return sum(_traverse(key) + _traverse(item) for key, item in value.items())
    return 1


def _traversal(overload: str, args: list[Value], result: Value) -> int:
    return _traverse(args[0])


def _ip(overload: str, args: list[Value], result: Value) -> int:
    return 1 if overload == "cidr_ip" or args[0].__class__ is Cidr else ceil(size(args[0]) * TRAVERSAL)


def _contains_ip(overload: str, args: list[Value], result: Value) -> int:
    cost = ceil(2 * size(args[0]) * TRAVERSAL)
    return cost + (ceil(size(args[1]) * TRAVERSAL) if overload == "cidr_contains_ip_string" else 0)


def _contains_cidr(overload: str, args: list[Value], result: Value) -> int:
    own = size(args[0])
    cost = ceil(2 * own * TRAVERSAL) + ceil(own * TRAVERSAL) + 1
    return cost + (ceil(size(args[1]) * TRAVERSAL) if overload == "cidr_contains_cidr_string" else 0)


_UNIT_EQUALITY: Final = (
    frozenset((Quantity, PointerQuantity, Semver, Cidr, Url, values.NamedFormat)) | values._ADDRESSES
)


def _equality(overload: str, args: list[Value], result: Value) -> int | None:
    return 1 if args[0].__class__ in _UNIT_EQUALITY else None


def _table(*groups: tuple[str, ActualCost]) -> dict[str, ActualCost]:
    return {name: price for names, price in groups for name in names.split()}


KUBERNETES: Final[dict[str, ActualCost]] = _table(
    ("isSorted sum max min indexOf lastIndexOf", _traversal),
    ("url lowerAscii upperAscii substring trim", _scan),
    ("replace split", _scan_twice),
    ("join", _built),
    ("find findAll", _pattern),
    ("validate", _validation),
    ("cidr isIP isCIDR quantity isQuantity semver isSemver", _scan),
    ("ip", _ip),
    ("ip.isCanonical", _scan_twice),
    ("masked prefixLength family isUnspecified isLoopback isLinkLocalMulticast isLinkLocalUnicast", _one),
    ("isGlobalUnicast", _one),
    ("containsIP", _contains_ip),
    ("containsCIDR", _contains_cidr),
    ("sign asInteger isInteger asApproximateFloat isGreaterThan isLessThan compareTo add sub major minor patch", _one),
    ("format.named getScheme getHostname getHost getPort getEscapedPath getQuery", _one),
    ("_==_", _equality),
)


def _allocated(factor: float, amount: int) -> int:
    return int(amount * factor) + 1 + LIST_COST


def _output(overload: str, args: list[Value], result: Value) -> int:
    return _allocated(1, size(result))


def _flattened(overload: str, args: list[Value], result: Value) -> int:
    depth = float(args[1]) if len(args) == 2 and args[1].__class__ is int else 1.0
    return _allocated(max(depth, 0.0), size(args[0]))


def _compared(place: int) -> ActualCost:
    def price(overload: str, args: list[Value], result: Value) -> int:
        items = args[place]
        amount = size(items)
        if not amount or items.__class__ is not list:
            return _allocated(2.0, 0)
        factor = 2.0 + (TRAVERSAL if items[0].__class__ in (str, bytes) else 0)
        return _allocated(factor, amount * amount)

    return price


def _sets(factor: int) -> ActualCost:
    return lambda overload, args, result: 1 + size(args[0]) * size(args[1]) * factor


LISTS: Final[dict[str, ActualCost]] = {
    **_table(("list_slice lists_range list_reverse", _output), ("list_flatten list_flatten_int", _flattened)),
    "list_distinct": _compared(0),
    **{f"list_{kind.name}_sort": _compared(0) for kind in SORTABLE},
    **{f"list_{kind.name}_sortByAssociatedKeys": _compared(1) for kind in SORTABLE},
}
SETS: Final[dict[str, ActualCost]] = {
    "list_sets_contains_list": _sets(1),
    "list_sets_intersects_list": _sets(1),
    "list_sets_equivalent_list": _sets(2),
}


def _smaller(overload: str, args: list[Value], result: Value) -> int:
    return ceil(min(size(args[0]), size(args[1])) * TRAVERSAL)


def _both(overload: str, args: list[Value], result: Value) -> int:
    return ceil((size(args[0]) + size(args[1])) * TRAVERSAL)


def _product(overload: str, args: list[Value], result: Value) -> int:
    return ceil(size(args[0]) * TRAVERSAL) * ceil(size(args[1]) * TRAVERSAL)


def _second(overload: str, args: list[Value], result: Value) -> int:
    return size(args[1])


_STANDARD: Final[dict[str, Callable[[str, list[Value], Value], int]]] = {
    **_table(  # type: ignore[dict-item]
        ("starts_with_string ends_with_string string_to_bytes bytes_to_string strings_quote string_format", _scan),
        ("in_list", _second),
        ("equals not_equals", _smaller),
        ("add_string add_bytes", _both),
        ("matches_string", _pattern),
        ("contains_string", _product),
    ),
    **{
        f"{word}_{kind}": _smaller
        for word in ("less", "less_equals", "greater", "greater_equals")
        for kind in ("string", "bytes")
    },
}


def unit_price(args: list[Value], result: Value) -> int:
    """The price of most calls, whatever their arguments."""
    return 1


def price_of(
    function: str, overload: str, costs: dict[str, ActualCost], overload_costs: dict[str, ActualCost]
) -> Callable[[list[Value], Value], int]:
    """The price of one call site."""
    standard = _STANDARD.get(overload, _one)
    special = overload_costs.get(overload) or costs.get(function)
    if standard is _one and special in (None, _one):
        return unit_price

    def price(args: list[Value], result: Value) -> int:
        if special is not None:
            cost = special(overload, args, result)
            if cost is not None:
                return cost
        return int(standard(overload, args, result) or 0)

    return price
