"""How Go's ``%v`` and ``%q`` write JSON values.

Upstream's error texts quote values that way, and people search for these texts.
"""

from __future__ import annotations

import json
from typing import Any


def plain(value: Any) -> str:
    """The text that ``%v`` gives for a decoded JSON value: ``map[a:1 b:[x y]]``."""
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "map[" + " ".join(f"{k}:{plain(value[k])}" for k in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(plain(v) for v in value) + "]"
    return str(value)


def quoted(text: str) -> str:
    """The text that ``%q`` gives for a string."""
    return json.dumps(text, ensure_ascii=False)


def type_name(value: Any) -> str:
    """Go's name of the type that a JSON value decodes to."""
    if isinstance(value, dict):
        return "map[string]interface {}"
    if isinstance(value, list):
        return "[]interface {}"
    if value is None:
        return "%!s(<nil>)"
    return {"str": "string", "bool": "bool", "int": "int64", "float": "float64"}[type(value).__name__]
