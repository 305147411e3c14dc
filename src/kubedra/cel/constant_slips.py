"""Slips in the constants of a selector: quantities and versions that no parser takes, a selector that is a constant.

These need no fleet to be seen. Upstream has no counterpart.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from kubedra.base.quantity import Quantity, QuantityError
from kubedra.base.semver import Semver, SemverError, normalise
from kubedra.cel.ast import Call, Literal, Node, walk
from kubedra.cel.slips import Slip
from kubedra.cel.spans import Edit, Spans

_AMOUNT: Final = re.compile(r"\s*([+-]?[0-9.]+)\s*([A-Za-z]*)\s*")


def constant_slips(root: Node, source: str) -> Iterator[Slip]:
    """What is wrong with the constants of an expression."""
    spans = Spans(source)
    if isinstance(root, Literal) and isinstance(root.value, bool):
        word = "true" if root.value else "false"
        yield Slip(f"always-{word}", root.offset, f"the whole selector is always {word}")
    for node in walk(root):
        if not isinstance(node, Call) or node.function not in ("quantity", "semver") or len(node.args) != 1:
            continue
        literal = node.args[0]
        if node.target is not None or not isinstance(literal, Literal) or not isinstance(literal.value, str):
            continue
        start, end = spans.extent(literal)
        if node.function == "quantity":
            slip = _quantity(literal.value)
        else:
            slip = _version(literal.value)
        if slip is not None:
            code, message, repaired = slip
            edits = (Edit(start, end, f'"{repaired}"'),) if repaired else ()
            yield Slip(code, literal.offset, message + (f"; write {repaired}" if repaired else ""), edits)


def _quantity(text: str) -> tuple[str, str, str] | None:
    try:
        Quantity.parse(text)
    except QuantityError:
        message = (
            f'"{text}" is no quantity, evaluating it fails: units are k, M, G, T or Ki, Mi, Gi, Ti, without a space'
        )
        return "invalid-quantity", message, _amount(text)
    return None


def _amount(text: str) -> str:
    """The quantity that was probably meant, or ""."""
    found = _AMOUNT.fullmatch(text)
    if found is None:
        return ""
    unit = found[2]
    if len(unit) > 1 and unit[-1] in "bB":
        unit = unit[:-1]
    unit = "k" if unit in ("K", "k") else unit[:1].upper() + unit[1:].lower()
    try:
        Quantity.parse(found[1] + unit)
    except QuantityError:
        return ""
    return found[1] + unit


def _version(text: str) -> tuple[str, str, str] | None:
    try:
        Semver.parse(text)
        return None
    except SemverError as error:
        message = (
            f'"{text}" is no version, evaluating it fails ({error}): versions are three numbers without leading zeros'
        )
    try:
        repaired = str(Semver.parse(normalise(text)))
    except SemverError:
        repaired = ""
    return "invalid-version", message, repaired
