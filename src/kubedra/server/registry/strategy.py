"""The seam between the generic verbs and what is particular to a kind.

A strategy works on plain JSON trees in the *storage* version of its kind (resource.k8s.io: v1), after decoding,
defaulting and conversion, and before encoding. `prepare_*` may change the new tree in place (the caller owns it);
the old tree is shared and read-only. Nothing here does I/O: what a rule must know of the cluster comes in through
the context.

The verbs themselves do, for every kind: name and namespace against the URL, generateName, uid, creationTimestamp,
resourceVersion, generation, status kept apart from spec (`main` resource keeps the old status, `status` keeps
everything else), finalizers, managed fields. Validation of metadata belongs to `validation` (for all kinds).

Upstream counterpart: pkg/registry/<group>/<kind>/strategy.go and apiserver/pkg/registry/rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kubedra.api.fields import FieldError
from kubedra.api.kinds import Kind
from kubedra.base.features import FeatureGates
from kubedra.server.access.users import Attributes, Decision, User

Tree = dict[str, Any]


@dataclass(frozen=True)
class StrategyContext:
    """What a strategy may know about the request and the cluster."""

    kind: Kind[Any]
    operation: str  # "create", "update" or "patch": the verb of the request
    namespace: str
    name: str
    subresource: str
    user: User
    features: FeatureGates
    now: str  # RFC 3339, whole seconds
    namespace_labels: Callable[[str], Mapping[str, str] | None] = field(repr=False)
    authorize: Callable[[Attributes], Decision] = field(repr=False)


class Strategy:
    """The default: a kind without rules of its own."""

    # Kinds whose metadata.generation counts changes of everything but metadata and status.
    has_generation = False
    # Whether a PUT of an object that does not exist creates it.
    allow_create_on_update = False
    # Whether a PUT without resourceVersion overwrites.
    allow_unconditional_update = True

    def prepare_for_create(self, tree: Tree, context: StrategyContext) -> None:
        """Clears what a client may not set, drops fields of disabled features, fills what the server decides."""

    def prepare_for_update(self, new: Tree, old: Tree, context: StrategyContext) -> None:
        """The same for an update; `context.subresource` says which part may change."""

    def canonicalize(self, tree: Tree) -> None:
        """Brings a valid object into the form that is stored."""

    def validate_create(self, tree: Tree, context: StrategyContext) -> list[FieldError]:
        """All faults of a new object."""
        return []

    def validate_update(self, new: Tree, old: Tree, context: StrategyContext) -> list[FieldError]:
        """All faults of a change."""
        return []

    def warnings(self, new: Tree, old: Tree | None, context: StrategyContext) -> list[str]:
        """Warnings for the client; `old` is None on create."""
        return []
