"""CEL values as Python objects, and what all of them share: type, equality, order, size.

null is None, bool/int/double/string/bytes are Python's own, uint is an int of a class of its own, lists are lists,
maps are dicts. Python takes True for 1 and 1.0 for 1 as dict keys; CEL agrees on the numbers (cross-type lookup) but
not on bools, so bool keys are stored as two sentinels.

Equality keeps upstream's asymmetry: a Semver or Quantity on the left of something else is "no such overload", on the
right it is merely unequal. A quantity that came from add() or sub() is a pointer value there and only equal when it
stands on the left (PointerQuantity).

Upstream counterpart: cel-go common/types, k8s.io/apiserver/pkg/cel/{quantity,semver,url,ip,cidr}.go.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Any, Final

from kubedra.base.quantity import Quantity
from kubedra.base.semver import Semver
from kubedra.cel import types
from kubedra.cel.errors import EvaluationError
from kubedra.cel.types import Type

Value = Any
"""A CEL value; the evaluator looks at classes, so a union would only be cast away again."""

NO_SUCH_OVERLOAD: Final = "no such overload"


class UInt(int):
    """An unsigned 64-bit integer."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{int(self)}u"


class Duration(int):
    """A span of time in nanoseconds."""

    __slots__ = ()


class Timestamp(int):
    """A point in time in nanoseconds since the epoch (UTC)."""

    __slots__ = ()


class Optional:
    """``optional.of(value)`` or, as NONE, ``optional.none()``."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value

    def __repr__(self) -> str:
        return "optional.none()" if self is NONE else f"optional({self.value!r})"


NONE: Final = Optional(None)


class PointerQuantity(Quantity):
    """A quantity made by arithmetic."""

    __slots__ = ()


class _BoolKey:
    """Stands for a bool where it is the key of a map."""

    __slots__ = ("value",)

    def __init__(self, value: bool) -> None:
        self.value = value

    def __repr__(self) -> str:
        return repr(self.value)


_TRUE_KEY: Final = _BoolKey(True)
_FALSE_KEY: Final = _BoolKey(False)


class DefaultMap(dict[str, Any]):
    """A map that finds an empty map under every key it lacks; iteration, size and ``in`` see only what is there."""

    __slots__ = ()

    def __missing__(self, key: str) -> dict[str, Any]:
        return EMPTY_MAP


EMPTY_MAP: Final[dict[str, Any]] = {}


class Url:
    """A parsed absolute URL."""

    __slots__ = ("escaped_path", "host", "hostname", "port", "query", "scheme", "text")

    def __init__(
        self, text: str, scheme: str, host: str, hostname: str, port: str, path: str, query: dict[str, list[str]]
    ) -> None:
        self.text = text
        self.scheme = scheme
        self.host = host
        self.hostname = hostname
        self.port = port
        self.escaped_path = path
        self.query = query


class NamedFormat:
    """A format of ``format.named``: a name and the function that says what is wrong with a text."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


class Cidr:
    """A prefix as written: the address may have bits beyond the prefix."""

    __slots__ = ("address", "length")

    def __init__(self, address: IPv4Address | IPv6Address, length: int) -> None:
        self.address = address
        self.length = length

    @property
    def network(self) -> IPv4Network | IPv6Network:
        text = f"{self.address}/{self.length}"
        return IPv4Network(text, strict=False) if self.address.version == 4 else IPv6Network(text, strict=False)


_TYPES: Final[dict[type, Type]] = {
    bool: types.BOOL,
    int: types.INT,
    UInt: types.UINT,
    float: types.DOUBLE,
    str: types.STRING,
    bytes: types.BYTES,
    type(None): types.NULL,
    list: Type("list", "list"),
    dict: Type("map", "map"),
    DefaultMap: Type("map", "map"),
    Duration: types.DURATION,
    Timestamp: types.TIMESTAMP,
    Optional: Type("opaque", "optional_type"),
    Quantity: types.QUANTITY,
    PointerQuantity: types.QUANTITY,
    Semver: types.SEMVER,
    Url: types.URL,
    NamedFormat: types.NAMED_FORMAT,
    IPv4Address: types.IP,
    IPv6Address: types.IP,
    Cidr: types.CIDR,
    Type: types.TYPE,
}
_GO_NAMES: Final[dict[type, str]] = {
    bool: "types.Bool",
    int: "types.Int",
    UInt: "types.Uint",
    float: "types.Double",
    str: "types.String",
    bytes: "types.Bytes",
    type(None): "types.Null",
    list: "*types.baseList",
    dict: "*types.baseMap",
    DefaultMap: "cel.mapper",
    Duration: "types.Duration",
    Timestamp: "types.Timestamp",
    Optional: "*types.Optional",
    Quantity: "cel.Quantity",
    PointerQuantity: "*cel.Quantity",
    Semver: "cel.Semver",
    Url: "cel.URL",
    NamedFormat: "*cel.Format",
    IPv4Address: "cel.IP",
    IPv6Address: "cel.IP",
    Cidr: "cel.CIDR",
    Type: "*types.Type",
}
CLASSES: Final[dict[str, frozenset[type]]] = {}
for _class, _type in _TYPES.items():
    CLASSES[_type.name] = CLASSES.get(_type.name, frozenset()) | {_class}


class StructValue:
    """A struct-typed input (``device``): named fields; all of them are set."""

    __slots__ = ("fields", "type")

    def __init__(self, type_: Type, fields: dict[str, Any]) -> None:
        self.type = type_
        self.fields = fields


def type_of(value: Value) -> Type:
    """The runtime type of a value."""
    found = _TYPES.get(value.__class__)
    if found is not None:
        return found
    if isinstance(value, StructValue):
        return value.type
    return types.DYN


def go_name(value: Value) -> str:
    """What upstream's ``%T`` prints for the value."""
    return _GO_NAMES.get(value.__class__, "*types.dynamicMap")


def key_of(value: Value) -> Value:
    """The dict key for a CEL key."""
    if value is True:
        return _TRUE_KEY
    if value is False:
        return _FALSE_KEY
    return value


def keys(mapping: dict[Any, Any]) -> Iterator[Value]:
    """The CEL keys of a map."""
    for key in mapping:
        yield key.value if key.__class__ is _BoolKey else key


def find(mapping: dict[Any, Any], key: Value) -> tuple[Value, bool]:
    """The value under a key and whether it is there (a DefaultMap always has one for a string)."""
    kind = key.__class__
    if kind is bool:
        key = _TRUE_KEY if key else _FALSE_KEY
    elif kind is not str and kind is not int and kind is not UInt and kind is not float:
        if mapping.__class__ is DefaultMap:
            return EMPTY_MAP, True
        if kind is Semver or kind is bytes:
            raise unhashable(key)
        return None, False
    if key in mapping:
        return mapping[key], True
    if mapping.__class__ is DefaultMap:
        return EMPTY_MAP, True
    return None, False


def unhashable(value: Value) -> EvaluationError:
    """Upstream looks the value up in a Go map and panics."""
    return EvaluationError(f"internal error: runtime error: hash of unhashable type {go_name(value)}")


def hashable_key(key: Value) -> Value:
    """The dict key for a map literal's key; upstream's map refuses what Go cannot hash."""
    if key.__class__ is Semver or key.__class__ is bytes:
        raise unhashable(key)
    if key.__class__ in (list, dict, DefaultMap):
        raise EvaluationError(f"unsupported key type: {type_of(key).name}")
    return key_of(key)


def contains_key(mapping: dict[Any, Any], key: Value) -> bool:
    """``key in map``: real contents only."""
    kind = key.__class__
    if kind is str:
        return key in mapping
    if mapping.__class__ is DefaultMap:
        return False
    return find(mapping, key)[1]


_NUMBERS: Final = frozenset((int, UInt, float))


def equal(left: Value, right: Value) -> bool:
    """``left == right``; raises "no such overload" where upstream's left operand does."""
    one, two = left.__class__, right.__class__
    if one is two:
        if one is list:
            return _lists_equal(left, right)
        if one is dict or one is DefaultMap:
            return _maps_equal(left, right)
        if one is Optional:
            if left is NONE or right is NONE:
                return left is right
            return equal(left.value, right.value)
        if one is PointerQuantity:
            raise EvaluationError(NO_SUCH_OVERLOAD)
        if one is Cidr:
            return bool(left.address == right.address and left.length == right.length)
        if one is Url:
            return bool(left.text == right.text)
        if one is NamedFormat:
            return bool(left.name == right.name)
        return bool(left == right)
    if left is None or right is None:
        return False
    if one in _NUMBERS:
        return two in _NUMBERS and _numbers_order(left, right) == 0
    if one is Quantity or one is PointerQuantity:
        if two is Quantity:
            return bool(left == right)
        raise EvaluationError(NO_SUCH_OVERLOAD)
    if one in _STRICT_EQUALITY:
        if one in _ADDRESSES and two in _ADDRESSES:
            return _addresses_equal(left, right)
        raise EvaluationError(NO_SUCH_OVERLOAD)
    if one in _MAPS and two in _MAPS:
        return _maps_equal(left, right)
    return False


_MAPS: Final[frozenset[type]] = frozenset((dict, DefaultMap))
_ADDRESSES: Final = frozenset((IPv4Address, IPv6Address))
_STRICT_EQUALITY: Final = frozenset((Semver, Url, NamedFormat, Cidr, IPv4Address, IPv6Address))


def _addresses_equal(left: Any, right: Any) -> bool:
    return bool(left == right)


def safely_equal(left: Value, right: Value) -> bool:
    """Equality where upstream takes an error for "not equal" (``in``, ``!=``, ``includes``)."""
    try:
        return equal(left, right)
    except EvaluationError:
        return False


def not_unequal(left: Value, right: Value) -> bool:
    """Equality where upstream only looks for a definite "no" (elements of lists and maps)."""
    try:
        return equal(left, right)
    except EvaluationError:
        return True


def _lists_equal(left: list[Value], right: list[Value]) -> bool:
    return len(left) == len(right) and all(not_unequal(a, b) for a, b in zip(left, right, strict=True))


def _maps_equal(left: dict[Any, Any], right: dict[Any, Any]) -> bool:
    if len(left) != len(right):
        return False
    return all(key in right and not_unequal(value, right[key]) for key, value in left.items())


def _numbers_order(left: Any, right: Any) -> int | None:
    """Order of numbers of different kinds; beside a double the other is taken as a double, as upstream does."""
    if left.__class__ is float:
        right = float(right)
    elif right.__class__ is float:
        left = float(left)
    if left == right:
        return 0
    return None if left != left or right != right else (-1 if left < right else 1)


_ORDERED: Final = frozenset((bool, str, bytes, Duration, Timestamp))


def compare(left: Value, right: Value) -> int | None:
    """-1, 0 or 1; None where a NaN takes part. Raises "no such overload" for kinds that have no common order."""
    one, two = left.__class__, right.__class__
    if (one is two and one in _ORDERED) or (one in _NUMBERS and two in _NUMBERS):
        if (one is float and math.isnan(left)) or (two is float and math.isnan(right)):
            raise EvaluationError("NaN values cannot be ordered")
        if one is not two:
            return _numbers_order(left, right)
        return -1 if left < right else 1 if left > right else 0
    raise EvaluationError(NO_SUCH_OVERLOAD)


COMPARABLE: Final = _ORDERED | _NUMBERS
_SIZED: Final = frozenset((str, bytes, list, dict, DefaultMap))


def size(value: Value) -> int:
    """What the cost rules take for the size of a value: 1 for everything without one."""
    kind = value.__class__
    if kind in _SIZED:
        return len(value)
    if kind is Optional and value is not NONE:
        return size(value.value)
    if kind is Cidr:
        return int(value.length + 7) // 8
    if kind is IPv4Address:
        return 4
    if kind is IPv6Address:
        return 16
    return 1


def is_zero(value: Value) -> bool:
    """Whether ``optional.ofNonZeroValue`` takes the value for empty."""
    if value is None:
        return True
    kind = value.__class__
    if kind in (bool, int, UInt, float, Duration):
        return not value
    if kind in _SIZED:
        return not value
    if kind is Optional:
        return value is NONE
    return False
