"""What can go wrong with an expression, and how it is told.

Compile errors carry every issue that was found with its place; their text is rendered as upstream's admission shows
it (``ERROR: <input>:LINE:COL: message``, the source line, a caret), because people search for that text and tools
parse it. Evaluation errors are plain messages: which device and selector they belong to is the caller's knowledge.

Upstream counterpart: cel-go common/errors.go and common/error.go, and the prefixes of
k8s.io/dynamic-resource-allocation/cel/compile.go.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MAX_REPORTED: Final = 100
_MAX_SNIPPET: Final = 16384
NO_POSITION: Final = -1


@dataclass(frozen=True, slots=True)
class Issue:
    """One finding: a code-point offset into the source (NO_POSITION: of the whole) and a message."""

    offset: int
    message: str


class CelError(Exception):
    """Root of everything this room raises on purpose."""


class CompileError(CelError):
    """The expression cannot be used; ``str()`` is upstream's text, ``line``/``column`` are 1-based (-1 and 0: none)."""

    def __init__(self, text: str, message: str, line: int = -1, column: int = 0, issues: tuple[Issue, ...] = ()):
        super().__init__(text)
        self.message = message
        self.line = line
        self.column = column
        self.issues = issues


class EvaluationError(CelError):
    """The expression has no value for this input."""

    @property
    def message(self) -> str:
        return str(self.args[0]) if self.args else ""


class CostLimitError(EvaluationError):
    """The evaluation was stopped because it cost too much."""

    def __init__(self, message: str = "operation cancelled: actual cost limit exceeded"):
        super().__init__(message)


def position(source: str, offset: int) -> tuple[int, int]:
    """1-based line and 0-based column of an offset; (-1, -1) where there is none."""
    if offset < 0:
        return -1, -1
    line = source.count("\n", 0, offset) + 1
    return line, offset - (source.rfind("\n", 0, offset) + 1)


def render(source: str, issues: list[Issue]) -> str:
    """All issues as upstream prints them, sorted by place, at most MAX_REPORTED."""
    shown = [(position(source, issue.offset), issue.message) for issue in issues[:MAX_REPORTED]]
    shown.sort(key=lambda item: item[0])
    parts = [_render_one(source, place, message) for place, message in shown]
    if len(issues) > MAX_REPORTED:
        parts.append(f"{len(issues) - MAX_REPORTED} more errors were truncated")
    return "\n".join(parts)


def _render_one(source: str, place: tuple[int, int], message: str) -> str:
    line, column = place
    text = f"ERROR: <input>:{line}:{column + 1}: {message}"
    if line < 1:
        return text
    snippet = source.split("\n")[line - 1].replace("\t", " ")
    if len(snippet.encode("utf-8", "replace")) > _MAX_SNIPPET:
        return text
    dots = "".join("." if character < "\x80" else "\uff0e" for character in snippet[:column])
    caret = "\uff3e" if column < len(snippet) and snippet[column] >= "\x80" else "^"
    return f"{text}\n | {snippet}\n | {dots}{caret}"


def compile_error(source: str, issues: list[Issue]) -> CompileError:
    """The error that stands for all issues; place and message are those of the first by position."""
    first = min(issues, key=lambda issue: position(source, issue.offset))
    line, column = position(source, first.offset)
    return CompileError(
        "compilation failed: " + render(source, issues), first.message, line, column + 1, tuple(issues[:MAX_REPORTED])
    )
