"""Conversion between served versions: the rules stand in `api.conversion`, this is how the server calls them."""

from __future__ import annotations

from typing import Any

from kubedra.api import conversion
from kubedra.api.kinds import Kind

Tree = dict[str, Any]


def convert(tree: Tree, old: Kind[Any], new: Kind[Any]) -> Tree:
    """The object in another version; the result may share parts with the argument."""
    tree["kind"] = old.kind
    return conversion.convert(tree, old.api_version, new.api_version)
