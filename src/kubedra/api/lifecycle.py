"""When a version of a kind came and when it will go: what a server of some Kubernetes version serves and warns of.

Upstream counterpart: the prerelease-lifecycle methods of k8s.io/api and the deprecation warnings of the endpoints.
"""

from __future__ import annotations

from typing import Any

from kubedra.api.kinds import Kind

_RESOURCE = "resource.k8s.io"

# The Kubernetes version that first served a kind in a version, where that matters to us.
_SINCE: dict[tuple[str, str, str], str] = {
    (_RESOURCE, "v1", "DeviceTaintRule"): "1.37",
    ("scheduling.k8s.io", "v1beta1", "PodGroup"): "1.37",
}

# Since when a version is deprecated and from when on it is gone, by version; by kind where a kind differs.
_DEPRECATED: dict[tuple[str, str], tuple[str, str]] = {
    ("v1beta1", ""): ("1.35", "1.38"),
    ("v1beta2", ""): ("1.36", "1.39"),
    ("v1alpha3", "DeviceTaintRule"): ("1.36", "1.39"),
}
_NOT_DEPRECATED = frozenset({("v1beta2", "DeviceTaintRule")})


def is_served(kind: Kind[Any], version: str) -> bool:
    """Tell whether a server of a Kubernetes version ("1.36") serves a kind in its version."""
    since = _SINCE.get((kind.group, kind.version, kind.kind))
    return since is None or _number(since) <= _number(version)


def deprecation_warning(kind: Kind[Any], version: str) -> str:
    """Say that a version of a kind will go away; empty where it will not."""
    if kind.group != _RESOURCE or (kind.version, kind.kind) in _NOT_DEPRECATED:
        return ""
    spans = _DEPRECATED.get((kind.version, kind.kind)) or _DEPRECATED.get((kind.version, ""))
    if spans is None or _number(version) < _number(spans[0]):
        return ""
    return f"{kind.api_version} {kind.kind} is deprecated in v{spans[0]}+, unavailable in v{spans[1]}+"


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
