"""``format.dns1123Label()`` and its kin: Kubernetes' name checks as values.

Upstream counterpart: k8s.io/apiserver/pkg/cel/library/format.go.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from datetime import date
from typing import Final

from kubedra.base import names
from kubedra.cel.environment import Function, Library, Overload
from kubedra.cel.errors import EvaluationError
from kubedra.cel.library.network import parse_url
from kubedra.cel.library.times import parse_timestamp
from kubedra.cel.types import NAMED_FORMAT, STRING, list_of, optional_of
from kubedra.cel.values import NONE, NamedFormat, Optional

_UUID: Final = re.compile(r"[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12}")


def _uri(text: str) -> list[str]:
    try:
        parse_url(text)
    except EvaluationError as error:
        return [error.message.removeprefix("URL parse error during conversion from string: ")]
    return []


def _uuid(text: str) -> list[str]:
    return [] if _UUID.fullmatch(text) else ["does not match the UUID format"]


def _byte(text: str) -> list[str]:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return ["invalid base64"]
    return [] if text else ["invalid base64"]


def _date(text: str) -> list[str]:
    try:
        date.fromisoformat(text)
    except ValueError:
        return ["invalid date"]
    return [] if len(text) == 10 else ["invalid date"]


def _datetime(text: str) -> list[str]:
    try:
        return [] if parse_timestamp(text) is not None else ["invalid datetime"]
    except EvaluationError:
        return ["invalid datetime"]


def _prefix(check: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    return lambda text: check(names.mask_trailing_dash(text))


# Name, check, and the size of the pattern that its price is made of.
_FORMATS: Final[dict[str, tuple[Callable[[str], list[str]], int]]] = {
    "dns1123Label": (names.dns_label, 30),
    "dns1123Subdomain": (names.dns_subdomain, 60),
    "dns1035Label": (names.dns1035_label, 30),
    "qualifiedName": (names.qualified_name, 60),
    "dns1123LabelPrefix": (_prefix(names.dns_label), 30),
    "dns1123SubdomainPrefix": (_prefix(names.dns_subdomain), 60),
    "dns1035LabelPrefix": (_prefix(names.dns1035_label), 30),
    "labelValue": (names.label_value, 40),
    "uri": (_uri, 400),
    "uuid": (_uuid, 100),
    "byte": (_byte, 80),
    "date": (_date, 130),
    "datetime": (_datetime, 130),
}
MAX_PATTERN: Final = 128
_VALUES: Final = {name: NamedFormat(name) for name in _FORMATS}


def pattern_size(name: str) -> int:
    """The size of pattern that checking a format is priced as."""
    return _FORMATS[name][1]


def _named(name: str) -> Optional:
    found = _VALUES.get(name)
    return NONE if found is None else Optional(found)


def _validate(format_: NamedFormat, text: str) -> Optional:
    faults = _FORMATS[format_.name][0](text)
    return Optional(faults) if faults else NONE


def _constant(name: str) -> Function:
    return Function(f"format.{name}", (Overload(f"format.{name}", (), NAMED_FORMAT, False, lambda: _VALUES[name]),))


LIBRARY: Final = Library(
    functions=(
        Function(
            "validate",
            (Overload("format-validate", (NAMED_FORMAT, STRING), optional_of(list_of(STRING)), True, _validate),),
        ),
        Function("format.named", (Overload("format-named", (STRING,), optional_of(NAMED_FORMAT), False, _named),)),
        *(_constant(name) for name in _FORMATS),
    )
)
