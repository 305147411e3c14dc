"""Bounds that keep an expression from running away, whatever it says.

Upstream's parser allows 250 levels of nesting; a recursive-descent parser, the checker and the closures of such an
expression need more Python frames than the interpreter's default of 1,000. Python frames of this kind live on the
heap, so a higher limit is safe; it is still a limit, and a RecursionError becomes a compile error.
"""

from __future__ import annotations

import sys
from typing import Final

MAX_NESTING: Final = 250
RECURSION_MESSAGE: Final = f"expression recursion limit exceeded: {MAX_NESTING}"
MAX_CODE_POINTS: Final = 100_000
# Results of string and list functions; upstream bounds them by cost alone, after they were built.
MAX_RESULT_SIZE: Final = 4_000_000
_FRAMES: Final = 12_000


def ensure_stack_room() -> None:
    """Raise the interpreter's recursion limit to what a legal expression can need; never lowers it."""
    if sys.getrecursionlimit() < _FRAMES:
        sys.setrecursionlimit(_FRAMES)


# Once, when the room is first used: tools that watch the limit (test runners) must not see it change under them.
ensure_stack_room()
