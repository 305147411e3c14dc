"""What validation may know besides the object: which features are on and what others have decided.

Validation is pure: the server passes in what a rule needs of the cluster. Upstream counterpart: the options structs
and `ctx` arguments of pkg/apis/*/validation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from kubedra.base.features import FeatureGates


def _no_namespace(_name: str) -> Mapping[str, str] | None:
    return None


@dataclass(frozen=True)
class Context:
    """The circumstances of one validation."""

    features: FeatureGates = field(default_factory=FeatureGates)
    # The labels of a namespace by name; None where there is no such namespace.
    namespace_labels: Callable[[str], Mapping[str, str] | None] = _no_namespace

    def enabled(self, gate: str) -> bool:
        """Tell whether a feature is on."""
        return self.features.enabled(gate)
