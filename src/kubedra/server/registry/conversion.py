"""Conversion between served versions: the rules stand in `api.conversion`, this is how the server calls them."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache
from typing import Any

from kubedra.api.kinds import Kind

Tree = dict[str, Any]


def convert(tree: Tree, old: Kind[Any], new: Kind[Any]) -> Tree:
    """The object in another version; the result may share parts with the argument."""
    tree["kind"] = old.kind
    return _conversion()(tree, old.api_version, new.api_version)


@cache
def _conversion() -> Callable[[Tree, str, str], Tree]:
    try:
        module = importlib.import_module("kubedra.api.conversion")
    except ModuleNotFoundError:
        return lambda tree, old, new: tree
    found: Callable[[Tree, str, str], Tree] = module.convert
    return found
