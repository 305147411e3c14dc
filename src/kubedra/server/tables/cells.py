"""Small parts of table cells: ages, selectors, ready counts.

Upstream counterpart: apimachinery/pkg/util/duration and pkg/printers/internalversion.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from kubedra.base.clock import parse_time

Tree = dict[str, Any]
_MODES = {
    "ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP",
}  # fmt: skip


def duration(seconds: float) -> str:
    """Upstream's HumanDuration."""
    total = int(seconds)
    if total < -1:
        return "<invalid>"
    if total < 0:
        return "0s"
    if total < 120:
        return f"{total}s"
    minutes = total // 60
    if minutes < 10:
        return f"{minutes}m{total % 60}s" if total % 60 else f"{minutes}m"
    if minutes < 180:
        return f"{minutes}m"
    hours = total // 3600
    if hours < 8:
        return f"{hours}h{minutes % 60}m" if minutes % 60 else f"{hours}h"
    if hours < 48:
        return f"{hours}h"
    days = hours // 24
    if hours < 192:
        return f"{days}d{hours % 24}h" if hours % 24 else f"{days}d"
    if days < 730:
        return f"{days}d"
    years = days // 365
    if years < 8:
        return f"{years}y{days % 365}d" if days % 365 else f"{years}y"
    return f"{years}y"


def age(then: datetime, now: datetime) -> str:
    """How long ago."""
    return duration((now - then).total_seconds())


def since(text: str | None, now: datetime) -> str:
    """Age of a time of the API."""
    return age(parse_time(text), now) if text else "<unknown>"


def created(tree: Tree, now: datetime) -> str:
    """The Age column."""
    return since(tree["metadata"].get("creationTimestamp"), now)


def spec(tree: Tree) -> Tree:
    """The spec, empty if there is none."""
    found: Tree = tree.get("spec") or {}
    return found


def status(tree: Tree) -> Tree:
    """The status, empty if there is none."""
    found: Tree = tree.get("status") or {}
    return found


def joined(values: list[str], empty: str = "<none>") -> str:
    """Values with commas."""
    return ",".join(values) if values else empty


def label_selector(selector: Tree | None) -> str:
    """A label selector as upstream formats it."""
    if selector is None:
        return "<none>"
    parts = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    for expression in selector.get("matchExpressions") or ():
        key, operator = expression.get("key", ""), expression.get("operator", "")
        values = ",".join(sorted(expression.get("values") or ()))
        if operator == "Exists":
            parts.append(key)
        elif operator == "DoesNotExist":
            parts.append(f"!{key}")
        else:
            parts.append(f"{key} {'in' if operator == 'In' else 'notin'} ({values})")
    return ",".join(parts) or "<none>"


def plain_selector(selector: Tree | None) -> str:
    """A map selector."""
    return joined([f"{key}={value}" for key, value in sorted((selector or {}).items())])


def template_columns(tree: Tree) -> tuple[str, str]:
    """Container names and images of a workload's template."""
    pod = (spec(tree).get("template") or {}).get("spec") or {}
    containers = pod.get("containers") or []
    return (
        ",".join(c.get("name", "") for c in containers),
        ",".join(c.get("image", "") for c in containers),
    )


def condition(tree: Tree, kind: str) -> Tree | None:
    """The condition of a type."""
    for found in status(tree).get("conditions") or ():
        if found.get("type") == kind:
            result: Tree = found
            return result
    return None


def access_modes(modes: list[str] | None) -> str:
    """Volume access modes in upstream's short form."""
    return ",".join(short for name, short in _MODES.items() if name in (modes or ()))
