"""The admission that does nothing; plugins override what concerns them."""

from __future__ import annotations

from typing import Any

from kubedra.server.calls import Call

Tree = dict[str, Any]


class Plugin:
    """Admits everything unchanged."""

    def create(self, call: Call, tree: Tree) -> None:
        """Called for a new object, in the stored version."""

    def update(self, call: Call, tree: Tree, old: Tree) -> None:
        """Called for a change; `old` is shared."""

    def delete(self, call: Call, old: Tree) -> None:
        """Called before an object is deleted."""
