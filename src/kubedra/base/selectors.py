"""Label and field selectors in their string forms, and label selector objects, as functions over plain values.

Counterpart: k8s.io/apimachinery ``pkg/labels`` and ``pkg/fields``. Parsing refuses what upstream refuses, with its
sentences; matching is a few dictionary look-ups, since a server asks it for every object of every selecting watch.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from kubedra.base import names


class SelectorError(ValueError):
    """The selector can't be understood."""


class Requirement(NamedTuple):
    """One condition on labels: key, operator (in, notin, exists, !, gt, lt, and = == !=) and values."""

    key: str
    operator: str
    values: tuple[str, ...]

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether the labels fulfil this condition."""
        value = labels.get(self.key)
        operator = self.operator
        if operator in ("=", "==", "in"):
            return value is not None and value in self.values
        if operator in ("!=", "notin"):
            return value is None or value not in self.values
        if operator == "exists":
            return value is not None
        if operator == "!":
            return value is None
        if value is None or not re.fullmatch(r"[+-]?\d+", value):
            return False
        bound = int(self.values[0])
        return int(value) > bound if operator == "gt" else int(value) < bound


class LabelSelector:
    """A conjunction of requirements; without any it matches everything."""

    __slots__ = ("nothing", "requirements")

    def __init__(self, requirements: Sequence[Requirement] = (), *, nothing: bool = False) -> None:
        self.requirements = tuple(requirements)
        self.nothing = nothing

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether an object with these labels is selected."""
        if self.nothing:
            return False
        return all(requirement.matches(labels) for requirement in self.requirements)

    @property
    def empty(self) -> bool:
        """True if it selects everything."""
        return not self.requirements and not self.nothing


_TOKEN = re.compile(r"\s*(?:(==|!=|=|!|,|\(|\)|>|<)|([^\s=!,()<>]+))")
_OPERATORS = "in, notin, =, ==, !=, gt, lt"


class _Parser:
    def __init__(self, text: str) -> None:
        self.tokens: list[str] = []
        position = 0
        text = text.rstrip()
        while position < len(text):
            match = _TOKEN.match(text, position)
            if match is None:
                raise SelectorError(f"unable to parse requirement: found '{text[position:]}'")
            self.tokens.append(match.group(1) or match.group(2))
            position = match.end()
        self.at = 0

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self) -> str:
        token = self.peek()
        self.at += 1
        return token

    def requirements(self) -> list[Requirement]:
        found: list[Requirement] = []
        if not self.tokens:
            return found
        while True:
            token = self.peek()
            if token == "!" or _is_word(token):
                found.append(self.requirement())
                token = self.take()
                if token == "":
                    return found
                if token != ",":
                    raise _error(f"found '{token}', expected: ',' or 'end of string'")
                if self.peek() != "!" and not _is_word(self.peek()):
                    raise _error(f"found '{self.peek()}', expected: identifier after ','")
            elif token == "":
                return found
            else:
                raise _error(f"found '{token}', expected: !, identifier, or 'end of string'")

    def requirement(self) -> Requirement:
        negated = self.peek() == "!"
        if negated:
            self.take()
        key = self.take()
        if not _is_word(key):
            raise _error(f"found '{key}', expected: identifier")
        problems = names.qualified_name(key)
        if problems:
            raise _error(f'key: Invalid value: "{key}": {"; ".join(problems)}')
        if negated:
            return Requirement(key, "!", ())
        if self.peek() in ("", ","):
            return Requirement(key, "exists", ())
        operator = self.take()
        if operator in ("in", "notin"):
            return self._checked(key, operator, self.set())
        if operator in ("=", "==", "!="):
            return self._checked(key, operator, (self.exact(),))
        if operator in (">", "<"):
            value = self.exact()
            if not re.fullmatch(r"[+-]?\d+", value):
                raise _error(
                    f"values[0][{key}]: Invalid value: \"{value}\": for 'Gt', 'Lt' operators, "
                    "the value must be an integer"
                )
            return Requirement(key, "gt" if operator == ">" else "lt", (value,))
        raise _error(f"found '{operator}', expected: {_OPERATORS}")

    @staticmethod
    def _checked(key: str, operator: str, values: tuple[str, ...]) -> Requirement:
        for index, value in enumerate(values):
            problems = names.label_value(value)
            if problems:
                raise _error(f'values[{index}][{key}]: Invalid value: "{value}": {"; ".join(problems)}')
        return Requirement(key, operator, values)

    def exact(self) -> str:
        if self.peek() in ("", ","):
            return ""
        token = self.take()
        if not _is_word(token):
            raise _error(f"found '{token}', expected: identifier")
        return token

    def set(self) -> tuple[str, ...]:
        token = self.take()
        if token != "(":
            raise _error(f"found '{token}' expected: '('")
        values: list[str] = []
        while True:
            token = self.take()
            if token == ")":
                return tuple(values or [""])
            if token == ",":
                values.append("")
            elif _is_word(token):
                values.append(token)
                separator = self.take()
                if separator == ")":
                    return tuple(values)
                if separator != ",":
                    raise _error(f"found '{separator}', expected: ',' or ')'")
            else:
                raise _error(f"found '{token}', expected: ',', or identifier")


def _is_word(token: str) -> bool:
    return bool(token) and token not in ("==", "!=", "=", "!", ",", "(", ")", ">", "<")


def _error(why: str) -> SelectorError:
    return SelectorError(f"unable to parse requirement: {why}")


def parse_label_selector(text: str) -> LabelSelector:
    """Reads ``a=b,c in (d,e),!f``. Raises `SelectorError`."""
    return LabelSelector(_Parser(text).requirements())


_OBJECT_OPERATORS = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}


def selector_from_object(selector: Mapping[str, Any] | None) -> LabelSelector:
    """A ``LabelSelector`` object of the API as a selector; None selects nothing, an empty one everything.

    Raises `SelectorError` for an operator that does not exist.
    """
    if selector is None:
        return LabelSelector(nothing=True)
    found = [Requirement(key, "=", (value,)) for key, value in (selector.get("matchLabels") or {}).items()]
    for expression in selector.get("matchExpressions") or ():
        operator = _OBJECT_OPERATORS.get(expression.get("operator", ""))
        if operator is None:
            raise SelectorError(f'"{expression.get("operator")}" is not a valid label selector operator')
        found.append(Requirement(expression.get("key", ""), operator, tuple(expression.get("values") or ())))
    return LabelSelector(found)


class FieldRequirement(NamedTuple):
    """One condition on a field: path, whether it must be equal, and the value."""

    path: str
    equal: bool
    value: str


class FieldSelector:
    """A conjunction of (in)equalities over field paths such as ``metadata.name``."""

    __slots__ = ("requirements",)

    def __init__(self, requirements: Sequence[FieldRequirement] = ()) -> None:
        self.requirements = tuple(requirements)

    @property
    def empty(self) -> bool:
        """True if it selects everything."""
        return not self.requirements

    def matches(self, read: Callable[[str], str]) -> bool:
        """Whether an object is selected whose field values ``read`` gives."""
        return all((read(path) == value) is equal for path, equal, value in self.requirements)

    def exact(self, path: str) -> str | None:
        """The value that ``path`` must be equal to, or None."""
        for requirement in self.requirements:
            if requirement.path == path and requirement.equal:
                return requirement.value
        return None


def parse_field_selector(text: str) -> FieldSelector:
    """Reads ``spec.nodeName=n1,status.phase!=Running``. Raises `SelectorError`."""
    found: list[FieldRequirement] = []
    for part in re.split(r"(?<!\\),", text):
        if not part:
            continue
        match = re.search(r"(?<!\\)(!=|==|=)", part)
        if match is None:
            raise SelectorError(f"invalid selector: '{text}'; can't understand '{part}'")
        value = re.sub(r"\\([\\,=])", r"\1", part[match.end() :])
        found.append(FieldRequirement(part[: match.start()], match.group(1) != "!=", value))
    return FieldSelector(found)
