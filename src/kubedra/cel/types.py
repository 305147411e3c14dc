"""Static types and what may stand where: assignability, substitution of type parameters, printing.

Upstream counterparts: cel-go common/types/types.go, checker/types.go, checker/mapping.go, checker/format.go.
"""

from __future__ import annotations

from typing import Final

Substitution = dict[str, "Type"]


class Type:
    """An immutable type: a kind, a name, parameters."""

    __slots__ = ("_hash", "kind", "name", "params")

    kind: str
    name: str
    params: tuple[Type, ...]

    def __init__(self, kind: str, name: str, params: tuple[Type, ...] = ()) -> None:
        self.kind = kind
        self.name = name
        self.params = params
        self._hash = hash((kind, name, params))

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Type)
            and self._hash == other._hash
            and self.kind == other.kind
            and self.name == other.name
            and self.params == other.params
        )

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        if not self.params:
            return self.name
        return f"{self.name}({', '.join(str(param) for param in self.params)})"

    def __repr__(self) -> str:
        return f"Type({self})"


ANY: Final = Type("any", "google.protobuf.Any")
BOOL: Final = Type("bool", "bool")
BYTES: Final = Type("bytes", "bytes")
DOUBLE: Final = Type("double", "double")
DURATION: Final = Type("duration", "google.protobuf.Duration")
DYN: Final = Type("dyn", "dyn")
ERROR: Final = Type("error", "*error*")
INT: Final = Type("int", "int")
NULL: Final = Type("null", "null_type")
STRING: Final = Type("string", "string")
TIMESTAMP: Final = Type("timestamp", "google.protobuf.Timestamp")
TYPE: Final = Type("type", "type")
UINT: Final = Type("uint", "uint")

QUANTITY: Final = Type("struct", "kubernetes.Quantity")
SEMVER: Final = Type("struct", "kubernetes.Semver")
URL: Final = Type("struct", "kubernetes.URL")
NAMED_FORMAT: Final = Type("struct", "kubernetes.NamedFormat")
IP: Final = Type("opaque", "net.IP")
CIDR: Final = Type("opaque", "net.CIDR")


def list_of(element: Type) -> Type:
    """list(element)."""
    return Type("list", "list", (element,))


def map_of(key: Type, value: Type) -> Type:
    """map(key, value)."""
    return Type("map", "map", (key, value))


def optional_of(value: Type) -> Type:
    """optional_type(value)."""
    return Type("opaque", "optional_type", (value,))


def type_of(value: Type) -> Type:
    """type(value)."""
    return Type("type", "type", (value,))


def struct(name: str) -> Type:
    """A struct type by name."""
    return Type("struct", name)


def param(name: str) -> Type:
    """A type parameter."""
    return Type("type_param", name)


_SHOWN: Final = {
    "any": "any",
    "duration": "duration",
    "error": "!error!",
    "null": "null",
    "timestamp": "timestamp",
}


def show(type_: Type) -> str:
    """The type as error messages print it."""
    special = _SHOWN.get(type_.kind)
    if special is not None:
        return special
    if not type_.params:
        return type_.name
    return f"{type_.name}({', '.join(show(item) for item in type_.params)})"


def is_dynamic(type_: Type) -> bool:
    """Whether nothing is known statically (dyn, any)."""
    return type_.kind in ("dyn", "any")


def is_dynamic_or_error(type_: Type) -> bool:
    """dyn, any, or the type of something that was reported already."""
    return type_.kind in ("dyn", "any", "error")


def unwrap_optional(type_: Type) -> tuple[Type, bool]:
    """The type inside an optional, and whether it was one."""
    if type_.kind == "opaque" and type_.name == "optional_type":
        return type_.params[0], True
    return type_, False


def substitute(mapping: Substitution, type_: Type, to_dyn: bool) -> Type:
    """Replace bound type parameters, and unbound ones by dyn if wanted."""
    while type_.kind == "type_param":
        bound = mapping.get(type_.name)
        if bound is None:
            return DYN if to_dyn else type_
        type_ = bound
    if not type_.params:
        return type_
    params = tuple(substitute(mapping, item, to_dyn) for item in type_.params)
    return type_ if params == type_.params else Type(type_.kind, type_.name, params)


def assignable(mapping: Substitution, left: list[Type], right: list[Type]) -> Substitution | None:
    """The mapping under which each left type may stand for its right one, or None."""
    if len(left) != len(right):
        return None
    extended = dict(mapping)
    for one, two in zip(left, right, strict=True):
        if not _assignable(extended, one, two):
            return None
    return extended


def _assignable(mapping: Substitution, one: Type, two: Type) -> bool:
    if two.kind == "type_param":
        valid, bound = _valid_substitution(mapping, one, two)
        if valid:
            return True
        if bound:
            return False
    if one.kind == "type_param":
        return _valid_substitution(mapping, two, one)[0]
    if is_dynamic_or_error(one) or is_dynamic_or_error(two):
        return True
    if one.kind == "null":
        return two.kind in _NULLABLE
    if two.kind == "null":
        return one.kind in _NULLABLE
    if one.kind == "type":
        return two.kind == "type"
    if one.kind in ("opaque", "list", "map"):
        return (
            one.kind == two.kind
            and one.name == two.name
            and len(one.params) == len(two.params)
            and all(_assignable(mapping, a, b) for a, b in zip(one.params, two.params, strict=True))
        )
    return one == two


_NULLABLE: Final = frozenset(("null", "opaque", "struct", "any", "duration", "timestamp"))


def _valid_substitution(mapping: Substitution, one: Type, two: Type) -> tuple[bool, bool]:
    """Whether ``one`` may stand for the parameter ``two``, and whether ``two`` was bound."""
    if one == two:
        return True, True
    bound = mapping.get(two.name)
    if bound is not None:
        if one == bound:
            return True, True
        if _assignable(mapping, one, bound):
            general = most_general(one, bound)
            if _free_of(mapping, two, general):
                mapping[two.name] = general
            return True, True
        return False, True
    if _free_of(mapping, two, one):
        mapping[two.name] = one
        return True, False
    return False, False


def _free_of(mapping: Substitution, parameter: Type, within: Type) -> bool:
    if parameter == within:
        return False
    if within.kind == "type_param":
        bound = mapping.get(within.name)
        return bound is None or _free_of(mapping, parameter, bound)
    return all(_free_of(mapping, parameter, item) for item in within.params)


def most_general(one: Type, two: Type) -> Type:
    """The less specific of two types that agree."""
    return one if _less_specific(one, two) else two


def _less_specific(one: Type, two: Type) -> bool:
    if is_dynamic(one) or one.kind == "type_param":
        return True
    if is_dynamic(two) or two.kind == "type_param":
        return False
    if one.kind != two.kind:
        return False
    if one.kind == "type":
        return True
    if one.kind in ("opaque", "list", "map"):
        return (
            one.name == two.name
            and len(one.params) == len(two.params)
            and all(_less_specific(a, b) for a, b in zip(one.params, two.params, strict=True))
        )
    return one == two
