"""The walk over a decoded tree along the schema table: unknown fields, wrong types, nulls, canonical scalars.

Trees are changed in place (the caller has just decoded them): unknown fields and nulls go, quantities and times get
their canonical text. Paths are linked tuples that become text only when there is something to say.
Upstream counterpart: what Go's JSON decoding into typed structs does, and sigs.k8s.io/json's strictness.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import cache, lru_cache
from typing import Any

from kubedra.api import schema
from kubedra.base.quantity import Quantity, QuantityError

ANY, STRING, INTEGER, BOOLEAN, NUMBER, STRUCT, ARRAY, MAP, QUANTITY, INT_OR_STRING, TIME, MICRO_TIME = range(12)
_CODES = {
    "string": STRING,
    "integer": INTEGER,
    "boolean": BOOLEAN,
    "number": NUMBER,
    "array": ARRAY,
    "quantity": QUANTITY,
    "intorstring": INT_OR_STRING,
    "time": TIME,
    "microtime": MICRO_TIME,
}
_RFC3339 = re.compile(r"(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(\.\d+)?([Zz]|[+-]\d\d:\d\d)")

# A path is () or (parent, name); a list index is an int.
Path = tuple[Any, ...]


class TypeMismatch(ValueError):
    """A value of the wrong JSON type, in the words of Go's decoder."""


class Duplicates(dict[str, Any]):
    """A JSON object in which keys stood more than once."""

    __slots__ = ("twice",)
    twice: list[str]


class Plan:
    """What is known of one struct, ready for the walk."""

    __slots__ = ("fields", "go_name", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.go_name = name.rsplit(".", 1)[-1]
        self.fields: dict[str, tuple[int, Any, schema.Field]] = {}


class Findings:
    """What the walk saw: strict faults in document order, and how many keys there were if they are to be counted."""

    __slots__ = ("counting", "keys", "strict")

    def __init__(self, *, counting: bool = False) -> None:
        self.strict: list[str] = []
        self.counting = counting
        self.keys = 0


@cache
def plan(name: str) -> Plan:
    """The plan of a definition of the schema table."""
    definition = schema.definition(name)
    made = Plan(name)
    for field_name, field in definition.fields.items():
        made.fields[field_name] = (*_step(field), field)
    return made


def _step(field: schema.Field) -> tuple[int, Any]:
    if field.ref:
        return (STRUCT, field.ref)
    if field.type == "array":
        return (ARRAY, (*_step(field.items), field.items)) if field.items is not None else (ANY, None)
    if field.type == "object":
        return (MAP, (*_step(field.values), field.values)) if field.values is not None else (ANY, None)
    return (_CODES.get(field.type, ANY), field.format)


def walk(tree: dict[str, Any], root: Plan, findings: Findings) -> None:
    """Checks and cleans a tree whose struct is `root`. Raises `TypeMismatch`."""
    _struct(tree, root, findings, ())


def _struct(tree: dict[str, Any], at: Plan, findings: Findings, path: Path) -> None:
    fields = at.fields
    findings.keys += len(tree)
    dropped: list[str] = []
    changed: list[tuple[str, Any]] = []
    twice = tree.twice if tree.__class__ is Duplicates else ()
    for name, value in tree.items():
        if twice and name in twice:
            findings.strict.append(f'duplicate field "{text((path, name))}"')
        step = fields.get(name)
        if step is None:
            findings.strict.append(f'unknown field "{text((path, name))}"')
            if findings.counting:
                findings.keys += count_keys(value)
            dropped.append(name)
            continue
        if value is None:
            dropped.append(name)
            continue
        code, argument, field = step
        if code == STRING:
            if value.__class__ is not str:
                raise _mismatch(value, at, path, name, field)
        elif code == STRUCT:
            if not isinstance(value, dict):
                raise _mismatch(value, at, path, name, field)
            _struct(value, plan(argument), findings, (path, name))
        else:
            cleaned = _value(value, code, argument, findings, (path, name), at, name, field)
            if cleaned is not value:
                changed.append((name, cleaned))
    for name in dropped:
        del tree[name]
    for name, value in changed:
        tree[name] = value


def _value(
    value: Any, code: int, argument: Any, findings: Findings, path: Path, at: Plan, name: str, field: schema.Field
) -> Any:
    kind = value.__class__
    if code == STRING:
        if kind is not str:
            raise _mismatch(value, at, path[0], name, field)
    elif code == ARRAY:
        if kind is not list:
            raise _mismatch(value, at, path[0], name, field)
        _array(value, argument, findings, path, at, name)
    elif code == MAP:
        if not isinstance(value, dict):
            raise _mismatch(value, at, path[0], name, field)
        _map(value, argument, findings, path, at, name)
    elif code == STRUCT:
        if not isinstance(value, dict):
            raise _mismatch(value, at, path[0], name, field)
        _struct(value, plan(argument), findings, path)
    elif code == INTEGER:
        if kind is not int or not _fits(value, argument):
            raise _mismatch(value, at, path[0], name, field)
    elif code == BOOLEAN:
        if kind is not bool:
            raise _mismatch(value, at, path[0], name, field)
    elif code == NUMBER:
        if kind is not int and kind is not float:
            raise _mismatch(value, at, path[0], name, field)
    elif code == QUANTITY:
        return _quantity(value)
    elif code == INT_OR_STRING:
        if kind is not int and kind is not str:
            raise _mismatch(value, at, path[0], name, field)
    elif code in (TIME, MICRO_TIME):
        return _time(value, code, at, path, name, field)
    elif findings.counting:
        findings.keys += count_keys(value)
    return value


def _array(values: list[Any], item: Any, findings: Findings, path: Path, at: Plan, name: str) -> None:
    code, argument, field = item
    if code == STRING:
        for index, value in enumerate(values):
            if value.__class__ is not str:
                if value is None:
                    values[index] = ""
                else:
                    raise _mismatch(value, at, path[0], name, field)
        return
    for index, value in enumerate(values):
        if value is None:
            values[index] = {} if code in (STRUCT, MAP) else value
        elif code == STRUCT:
            if not isinstance(value, dict):
                raise _mismatch(value, at, path[0], name, field)
            _struct(value, plan(argument), findings, (path, index))
        else:
            cleaned = _value(value, code, argument, findings, (path, index), at, name, field)
            if cleaned is not value:
                values[index] = cleaned


def _map(values: dict[str, Any], item: Any, findings: Findings, path: Path, at: Plan, name: str) -> None:
    code, argument, field = item
    findings.keys += len(values)
    if values.__class__ is Duplicates:
        for key in values.twice:
            findings.strict.append(f'duplicate field "{text((path, key))}"')
    for key, value in values.items():
        if code == STRING:
            if value.__class__ is not str:
                if value is not None:
                    raise _mismatch(value, at, path[0], name, field)
                values[key] = ""
        elif value is None:
            # Go makes the zero value of a map's value type from null.
            values[key] = "0" if code == QUANTITY else {} if code in (STRUCT, MAP) else value
        elif code == STRUCT:
            if not isinstance(value, dict):
                raise _mismatch(value, at, path[0], name, field)
            _struct(value, plan(argument), findings, (path, key))
        else:
            cleaned = _value(value, code, argument, findings, (path, key), at, name, field)
            if cleaned is not value:
                values[key] = cleaned


def _fits(value: int, form: str) -> bool:
    limit = 1 << 31 if form == "int32" else 1 << 63
    return -limit <= value < limit


def _quantity(value: Any) -> str:
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        raise TypeMismatch(
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        )
    if value == "":
        raise TypeMismatch(
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        )
    try:
        return str(Quantity.parse(value))
    except QuantityError as error:
        raise TypeMismatch(str(error)) from error


def _time(value: Any, code: int, at: Plan, path: Path, name: str, field: schema.Field) -> str:
    if value.__class__ is not str:
        raise TypeMismatch(
            f"json: cannot unmarshal {_go_kind(value)} into Go struct field "
            f"{at.go_name}.{_go_path(path)} of type string"
        )
    shaped = _spelled_time(value, code)
    return value if shaped == value else shaped


@lru_cache(maxsize=1024)
def _spelled_time(value: str, code: int) -> str:
    """A time as the API writes it; an object repeats a few, and so do the writes of a second."""
    match = _RFC3339.fullmatch(value)
    layout = "2006-01-02T15:04:05Z07:00" if code == TIME else "2006-01-02T15:04:05.000000Z07:00"
    if match is None:
        raise TypeMismatch(f'parsing time "{value}" as "{layout}": cannot parse "{value}" as "2006"')
    fraction = (match[3] or "")[:7]
    try:
        moment = datetime.fromisoformat(f"{match[1]}T{match[2]}{fraction}{match[4].upper().replace('Z', '+00:00')}")
    except ValueError as error:
        raise TypeMismatch(f'parsing time "{value}": {error}') from error
    moment = moment.astimezone(UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ" if code == TIME else "%Y-%m-%dT%H:%M:%S.%fZ")


def count_keys(value: Any) -> int:
    """How many object keys a free-form value holds."""
    if isinstance(value, dict):
        return len(value) + sum(map(count_keys, value.values()))
    if isinstance(value, list):
        return sum(map(count_keys, value))
    return 0


def text(path: Path) -> str:
    """A linked path as `spec.devices.requests[0].name`."""
    parts: list[str] = []
    while path:
        path, last = path
        parts.append(f"[{last}]" if isinstance(last, int) else f".{last}")
    return "".join(reversed(parts)).removeprefix(".")


def _go_path(path: Path) -> str:
    names: list[str] = []
    while path:
        path, last = path
        if not isinstance(last, int):
            names.append(last)
    return ".".join(reversed(names))


def _go_kind(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "string"
    if isinstance(value, int):
        return "number"
    if isinstance(value, float):
        return f"number {value!r}"
    return "array" if isinstance(value, list) else "object"


def _go_type(field: schema.Field) -> str:
    if field.ref:
        _, version, name = ("." + field.ref).rsplit(".", 2)
        return f"{version}.{name}"
    if field.type == "array":
        return "[]" + (_go_type(field.items) if field.items else "any")
    if field.type == "object":
        return "map[string]" + (_go_type(field.values) if field.values else "any")
    return {"boolean": "bool", "integer": field.format or "int64", "number": "float64"}.get(field.type, field.type)


def _mismatch(value: Any, at: Plan, path: Path, name: str, field: schema.Field) -> TypeMismatch:
    where = _go_path((path, name)) if not isinstance(name, int) else _go_path(path)
    kind = _go_kind(value)
    if isinstance(value, int) and not isinstance(value, bool) and field.type == "integer":
        kind = f"number {value}"
    return TypeMismatch(
        f"json: cannot unmarshal {kind} into Go struct field {at.go_name}.{where} of type {_go_type(field)}"
    )
