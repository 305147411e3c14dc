"""What is probably wrong with a selector that compiles: names, kinds, guards, near misses, against a fleet.

``examine`` is the whole check: compile (or repair), price, run over the fleet, look for slips, and put the repairs
that are certain into one repaired expression, which is compiled and run as well. Pure: the fleet is given.

Upstream has no counterpart (kubernetes/kubernetes#125826 asks for a part of it).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Final

from kubedra.cel.constant_slips import constant_slips
from kubedra.cel.errors import CompileError, EvaluationError, position
from kubedra.cel.fleet import ATTRIBUTES, CAPACITY, Fleet
from kubedra.cel.judging import Verdict, judge, split_parts
from kubedra.cel.parser import parse
from kubedra.cel.repairs import repair
from kubedra.cel.selector import (
    COST_LIMIT,
    MAX_EXPRESSION_BYTES,
    CompiledSelector,
    Features,
    check_selector_for_admission,
    compile_selector,
    environment_for,
)
from kubedra.cel.slips import Slip, accesses, find_slips
from kubedra.cel.spans import Edit, Spans, apply_edits

_ROUNDS: Final = 4


@dataclass(frozen=True, slots=True)
class Finding:
    """Something to look at: a stable code, where (1-based, 0: the whole), what, and what to do."""

    code: str
    line: int
    column: int
    message: str

    def tree(self) -> dict[str, Any]:
        """For JSON."""
        return {"code": self.code, "line": self.line, "column": self.column, "message": self.message}


@dataclass(slots=True)
class Examination:
    """All that is known about a selector."""

    expression: str
    error: str = ""
    output_type: str = ""
    estimated_cost: int | None = None
    admission: list[tuple[str, str]] = field(default_factory=list)
    devices: int = 0
    verdict: Verdict | None = None
    findings: list[Finding] = field(default_factory=list)
    repaired: str = ""
    repaired_matches: int | None = None

    @property
    def matches(self) -> int:
        """How many devices match."""
        return len(self.verdict.matched) if self.verdict is not None else 0

    def tree(self) -> dict[str, Any]:
        """For JSON; the names are stable."""
        verdict = self.verdict
        return {
            "expression": self.expression,
            "compiles": not self.error,
            "error": self.error or None,
            "outputType": self.output_type or None,
            "estimatedCost": self.estimated_cost,
            "costLimit": COST_LIMIT,
            "admission": [{"kind": kind, "detail": detail} for kind, detail in self.admission],
            "devices": self.devices,
            "matches": self.matches,
            "matching": verdict.matched if verdict is not None else [],
            "notMatching": _groups(verdict.unmatched) if verdict is not None else [],
            "errors": _groups(verdict.failed) if verdict is not None else [],
            "findings": [finding.tree() for finding in self.findings],
            "repaired": self.repaired or None,
            "repairedMatches": self.repaired_matches,
        }


def _groups(groups: list[Any]) -> list[dict[str, Any]]:
    return [
        {
            "part": group.part,
            "seen": list(group.seen),
            "message": group.message or None,
            "count": group.count,
            "examples": group.examples,
        }
        for group in groups
    ]


def examine(expression: str, fleet: Fleet, *, features: Features, version: str) -> Examination:
    """Check a selector against a fleet (which may be empty). Never raises for what the expression says."""
    result = Examination(expression, devices=len(fleet))
    result.admission = check_selector_for_admission(expression, features=features, version=version)
    try:
        selector = compile_selector(expression, features=features, version=version, stored=True)
    except CompileError as error:
        _failed(result, error, fleet, features, version)
        return result
    result.output_type = str(selector.output_type)
    result.estimated_cost = selector.estimated_cost
    parts = split_parts(expression, features=features, version=version)
    result.verdict = judge(selector, fleet.devices, parts)
    slips = _all_slips(selector, fleet, result.verdict, features, version)
    result.findings = [_finding(expression, slip) for slip in slips]
    _repair(result, slips, fleet, features, version)
    return result


def _finding(expression: str, slip: Slip) -> Finding:
    line, column = position(expression, slip.offset)
    return Finding(slip.code, max(line, 0), column + 1 if line > 0 else 0, slip.message)


_EXPLAINED: Final = (
    (
        "quantity-compared",
        r"overload for '_(<|<=|>|>=|==|!=)_' applied to '\((kubernetes\.Quantity, .*|.*, kubernetes\.Quantity)\)'",
        "a capacity is a quantity, neither a number nor a text: compare it with isGreaterThan, isLessThan or "
        'compareTo, as in compareTo(quantity("80Gi")) >= 0',
    ),
    (
        "literal-instead-of-object",
        r"overload for '(isGreaterThan|isLessThan|compareTo)' applied to '.*\.\((string|int|double)\)'",
        'these members want an object: quantity("80Gi") for capacities, semver("1.2.3") for versions',
    ),
    (
        "has-on-index",
        r"invalid argument to has\(\) macro",
        'has() wants a name behind a dot: has(device.attributes["domain"].name); for a domain write "domain" in '
        "device.attributes",
    ),
    (
        "qualified-name-as-domain",
        r"overload for '_[=!]=_' applied to '\(map\(",
        'a whole domain is compared here: write device.attributes["domain"].name, not ["domain/name"]',
    ),
)


def _failed(result: Examination, error: CompileError, fleet: Fleet, features: Features, version: str) -> None:
    result.error = str(error)
    for issue in error.issues:
        for code, pattern, message in _EXPLAINED:
            if re.search(pattern, issue.message):
                result.findings.append(_finding(result.expression, Slip(code, issue.offset, message)))
                break
    if len(result.expression) > MAX_EXPRESSION_BYTES:
        return
    swapped = _swapped(result, fleet, features, version)
    repaired = swapped or repair(result.expression, features=features, version=version)
    if repaired is None:
        return
    # The repaired text may have slips of its own (a version compared as a string).
    inner = examine(repaired, fleet, features=features, version=version)
    result.repaired = inner.repaired or repaired
    result.repaired_matches = inner.repaired_matches if inner.repaired else inner.matches


def _swapped(result: Examination, fleet: Fleet, features: Features, version: str) -> str | None:
    """The expression with attributes that are read as capacities put right, if that makes it compile."""
    try:
        root = parse(result.expression, environment_for(features, version, stored=True).macros)
    except CompileError:
        return None
    spans = Spans(result.expression)
    edits = []
    for read in accesses(root):
        if read.kind != CAPACITY or (read.domain, read.id) in fleet.names[CAPACITY]:
            continue
        token = spans.after(read.base.offset)
        if token is not None and (read.domain, read.id) in fleet.names[ATTRIBUTES]:
            edits.append(Edit(token.offset, token.offset + len(token.text), ATTRIBUTES))
            message = (
                f'{read.id} of "{read.domain}" is an attribute, not a capacity: '
                f'write device.attributes["{read.domain}"].{read.id}'
            )
            result.findings.append(
                _finding(result.expression, Slip("attributes-as-capacity", read.base.offset, message))
            )
    if not edits:
        return None
    changed = apply_edits(result.expression, edits)
    try:
        compile_selector(changed, features=features, version=version, stored=True)
    except CompileError:
        return repair(changed, features=features, version=version)
    return changed


def _repair(result: Examination, slips: list[Slip], fleet: Fleet, features: Features, version: str) -> None:
    current, found = result.expression, slips
    for _ in range(_ROUNDS):
        # Small edits first: a guard around a whole part waits for the next round.
        edits = sorted((edit for slip in found for edit in slip.edits), key=lambda edit: edit.end - edit.start)
        if not edits:
            break
        changed = apply_edits(current, edits)
        try:
            compile_selector(changed, features=features, version=version, stored=True)
        except CompileError:
            mended = repair(changed, features=features, version=version)
            if mended is None:
                break
            changed = mended
        current = changed
        found = _slips_of(current, fleet, features, version)
    if current != result.expression:
        result.repaired = current
        selector = compile_selector(current, features=features, version=version, stored=True)
        result.repaired_matches = _count(selector, fleet)


def _slips_of(expression: str, fleet: Fleet, features: Features, version: str) -> list[Slip]:
    selector = compile_selector(expression, features=features, version=version, stored=True)
    verdict = judge(selector, fleet.devices, split_parts(expression, features=features, version=version))
    return _all_slips(selector, fleet, verdict, features, version)


def _all_slips(
    selector: CompiledSelector, fleet: Fleet, verdict: Verdict, features: Features, version: str
) -> list[Slip]:
    def compile_(text: str) -> CompiledSelector:
        return compile_selector(text, features=features, version=version, stored=True)

    found = [*find_slips(selector, fleet, verdict, compile_), *constant_slips(selector.root, selector.expression)]
    return sorted(found, key=lambda slip: slip.offset)


def _count(selector: CompiledSelector, fleet: Fleet) -> int:
    count = 0
    known: dict[object, bool] = {}
    for item in fleet.devices:
        key = selector.key(item.device)
        if key not in known:
            try:
                known[key] = selector.evaluate(item.device)
            except EvaluationError:
                known[key] = False
        count += known[key]
    return count
