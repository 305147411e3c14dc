"""Which library is in the environment of which Kubernetes version.

New expressions (admission of something created or changed) may only use what the version before had, so that a
rolled-back server still understands them; expressions that are stored already, and the scheduler, get everything the
version knows. A feature gate, where one decides, wins in both directions. Versions before 1.33 need no table: all
their libraries are in every environment from 1.34 on.

Upstream counterpart: k8s.io/apiserver/pkg/cel/environment/base.go.
"""

from __future__ import annotations

from typing import Final

from kubedra.cel.environment import Function, Library, Overload
from kubedra.cel.estimates import KUBERNETES as KUBERNETES_ESTIMATES
from kubedra.cel.estimates import LISTS as LIST_ESTIMATES
from kubedra.cel.estimates import SETS as SET_ESTIMATES
from kubedra.cel.library import (
    conversions,
    lists,
    named_formats,
    network,
    operators,
    optionals,
    quantities,
    regex,
    strings,
    times,
)
from kubedra.cel.pricing import KUBERNETES as KUBERNETES_COSTS
from kubedra.cel.pricing import LISTS as LIST_COSTS
from kubedra.cel.pricing import SETS as SET_COSTS
from kubedra.cel.types import BOOL, INT, STRING, struct

STANDARD: Final = Library(
    functions=(*operators.functions(), *conversions.functions(), *times.functions()), types=operators.TYPES
)
PRICES: Final = Library(
    estimates=KUBERNETES_ESTIMATES,
    overload_estimates={**LIST_ESTIMATES, **SET_ESTIMATES},
    costs=KUBERNETES_COSTS,
    overload_costs={**LIST_COSTS, **SET_COSTS},
)


def _authorization() -> Library:
    """The authorizer's functions; no environment here has an authorizer, so they only shape messages."""
    authorizer, path = struct("kubernetes.authorization.Authorizer"), struct("kubernetes.authorization.PathCheck")
    group, resource = struct("kubernetes.authorization.GroupCheck"), struct("kubernetes.authorization.ResourceCheck")
    decision = struct("kubernetes.authorization.Decision")
    members = (
        ("path", "authorizer_path", (authorizer, STRING), path),
        ("group", "authorizer_group", (authorizer, STRING), group),
        ("serviceAccount", "authorizer_serviceaccount", (authorizer, STRING, STRING), authorizer),
        ("resource", "groupcheck_resource", (group, STRING), resource),
        ("subresource", "resourcecheck_subresource", (resource, STRING), resource),
        ("namespace", "resourcecheck_namespace", (resource, STRING), resource),
        ("name", "resourcecheck_name", (resource, STRING), resource),
        ("fieldSelector", "authorizer_fieldselector", (resource, STRING), resource),
        ("labelSelector", "authorizer_labelselector", (resource, STRING), resource),
        ("check", "pathcheck_check", (path, STRING), decision),
        ("check", "resourcecheck_check", (resource, STRING), decision),
        ("errored", "decision_errored", (decision,), BOOL),
        ("error", "decision_error", (decision,), STRING),
        ("allowed", "decision_allowed", (decision,), BOOL),
        ("reason", "decision_reason", (decision,), STRING),
    )
    merged: dict[str, Function] = {}
    for name, id_, args, result in members:
        function = Function(name, (Overload(id_, args, result, member=True),))
        merged[name] = merged[name].merged(function) if name in merged else function
    return Library(functions=tuple(merged.values()))


_BASE: Final[tuple[Library, ...]] = (
    optionals.MACROS,
    STANDARD,
    regex.LIBRARY,
    strings.STANDARD,
    network.URLS,
    regex.KUBERNETES,
    lists.KUBERNETES,
    _authorization(),
    optionals.LIBRARY,
    quantities.QUANTITIES,
    strings.EXTENSION,
    lists.SETS,
    network.ADDRESSES,
    network.NETWORKS,
    named_formats.LIBRARY,
    optionals.COMPREHENSIONS,
)
# What came later, with the minor version of 1.x it came in.
_LATER: Final[tuple[tuple[int, Library], ...]] = (
    (31, quantities.SEMVERS_STRICT),
    (33, quantities.SEMVERS_LOOSE),
    (34, lists.EXTENSION),
    (37, lists.INCLUDES),
)


def minor(version: str) -> int:
    """37 for "1.37"."""
    return int(version.partition(".")[2])


def libraries(version: str, stored: bool) -> tuple[Library, ...]:
    """The libraries of a version's environment for stored or for new expressions."""
    newest = minor(version) if stored else minor(version) - 1
    return (*_BASE, *(library for since, library in _LATER if since <= newest), PRICES)


__all__ = ["INT", "PRICES", "STANDARD", "libraries", "minor"]
