"""Constants that can only fail: durations, timestamps and patterns that do not parse.

Upstream counterpart: cel-go cel/validator.go (ValidateDurationLiterals and its kin).
"""

from __future__ import annotations

from kubedra.cel.ast import Call, Literal, Node, walk
from kubedra.cel.errors import EvaluationError, Issue
from kubedra.cel.library.conversions import to_duration, to_timestamp
from kubedra.cel.library.regex import PatternError, compile_pattern


def literal_issues(root: Node) -> list[Issue]:
    """ "invalid duration argument" and its kin, at the literal."""
    issues: list[Issue] = []
    for function in ("duration", "timestamp", "matches"):
        for node in walk(root):
            if not isinstance(node, Call) or node.function != function or not node.args:
                continue
            argument = node.args[0]
            if isinstance(argument, Literal) and not _valid(function, argument):
                issues.append(Issue(argument.offset, f"invalid {function} argument"))
    return issues


def _valid(function: str, literal: Literal) -> bool:
    try:
        if function == "duration":
            to_duration(literal.value)
        elif function == "timestamp":
            to_timestamp(literal.value)
        elif literal.kind == "string":
            compile_pattern(str(literal.value))
    except (EvaluationError, PatternError):
        return False
    return True
