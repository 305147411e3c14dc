"""From a URL path to what it means. Paths are data: the catalogue says what exists, nothing is registered.

Upstream counterpart: apiserver/pkg/endpoints/request (RequestInfo).
"""

from __future__ import annotations

from dataclasses import dataclass

from kubedra.server.serving import Catalogue, Served


@dataclass(frozen=True, slots=True)
class Target:
    """A resource path. `served` is None when nothing is served there; `all_namespaces` marks a list over all."""

    group: str
    version: str
    served: Served | None
    resource: str = ""
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    rest: str = ""
    all_namespaces: bool = False
    malformed: bool = False


def resolve(catalogue: Catalogue, path: str) -> Target | None:
    """The target of a resource path; None for every other path (discovery, health, unknown)."""
    parts = path.split("/")
    # ["", "api", "v1", plural, ...] or ["", "apis", group, version, plural, ...]
    if parts[1] == "api" and len(parts) > 3:
        group, version, rest = "", parts[2], parts[3:]
    elif len(parts) > 4 and parts[1] == "apis":
        group, version, rest = parts[2], parts[3], parts[4:]
    else:
        return None
    if rest[-1] == "":
        rest = rest[:-1]
    if not rest:
        return None
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and not (group == "" and rest[2] in ("status", "finalize")):
        namespace, rest = rest[1], rest[2:]
    plural = rest[0]
    name = rest[1] if len(rest) > 1 else ""
    subresource = rest[2] if len(rest) > 2 else ""
    remainder = "/".join(rest[3:])
    served = catalogue.find(group, version, plural)
    malformed = False
    all_namespaces = False
    if served is not None:
        if served.kind.namespaced:
            all_namespaces = not namespace and not name
            malformed = not namespace and bool(name)
        else:
            malformed = bool(namespace)
    return Target(group, version, served, plural, namespace, name, subresource, remainder, all_namespaces, malformed)
