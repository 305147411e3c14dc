"""Which nodes a core/v1 NodeSelector selects.

ResourceSlices, allocations and pods all name nodes with the same little language, and the allocator, the scheduler's
node affinity filter and `why` must read it alike: it is written once, here. It works on anything shaped like the
generated `core_v1.NodeSelector` (this room lies below `api/`, so the shape is stated as protocols).

Must never: raise. A term that can't be understood (an unknown operator or field, a `Gt` without a number) matches
nothing, as upstream treats it; that such terms are refused is validation's business.

Upstream: k8s.io/component-helpers/scheduling/corev1/nodeaffinity and apimachinery/pkg/labels/selector.go.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Protocol

NODE_NAME_FIELD = "metadata.name"
_INT64 = re.compile(r"[+-]?[0-9]+")


class RequirementShape(Protocol):
    """The shape of core/v1 NodeSelectorRequirement."""

    @property
    def key(self) -> str: ...
    @property
    def operator(self) -> str: ...
    @property
    def values(self) -> Sequence[str]: ...


class TermShape(Protocol):
    """The shape of core/v1 NodeSelectorTerm."""

    @property
    def match_expressions(self) -> Sequence[RequirementShape]: ...
    @property
    def match_fields(self) -> Sequence[RequirementShape]: ...


class SelectorShape(Protocol):
    """The shape of core/v1 NodeSelector."""

    @property
    def node_selector_terms(self) -> Sequence[TermShape]: ...


def matches_node_selector(selector: SelectorShape, labels: Mapping[str, str], node_name: str) -> bool:
    """Say whether a node with these labels and this name is selected: one of the terms must match it.

    A selector without terms selects nothing.
    """
    return any(matches_term(term, labels, node_name) for term in selector.node_selector_terms)


def matches_term(term: TermShape, labels: Mapping[str, str], node_name: str) -> bool:
    """Say whether every requirement of one term holds. A term without requirements matches nothing."""
    if not term.match_expressions and not term.match_fields:
        return False
    return all(matches_field(requirement, node_name) for requirement in term.match_fields) and all(
        matches_label(requirement, labels) for requirement in term.match_expressions
    )


def matches_label(requirement: RequirementShape, labels: Mapping[str, str]) -> bool:
    """Say whether the labels meet one requirement on a label."""
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value is not None and value in requirement.values
        case "NotIn":
            # As for every label selector: a node without the label is not in any set.
            return value is None or value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            bound = _int64(requirement.values[0]) if len(requirement.values) == 1 else None
            number = None if value is None else _int64(value)
            if bound is None or number is None:
                return False
            return number > bound if requirement.operator == "Gt" else number < bound
        case _:
            return False


def matches_field(requirement: RequirementShape, node_name: str) -> bool:
    """Say whether the node meets one requirement on a field: metadata.name, `In` or `NotIn` exactly one value."""
    if requirement.key != NODE_NAME_FIELD or len(requirement.values) != 1:
        return False
    match requirement.operator:
        case "In":
            return node_name == requirement.values[0]
        case "NotIn":
            return node_name != requirement.values[0]
        case _:
            return False


def _int64(text: str) -> int | None:
    if not _INT64.fullmatch(text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None
