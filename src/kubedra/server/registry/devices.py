"""Strategies of DeviceClass, ResourceSlice, DeviceTaintRule and ResourcePoolStatusRequest.

Upstream counterpart: pkg/registry/resource/{deviceclass,resourceslice,devicetaintrule,resourcepoolstatusrequest}.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubedra.api.kinds import Kind
from kubedra.base.features import FeatureGates
from kubedra.server.registry.dropping import (
    drop_from_class_spec,
    drop_from_pool_request_spec,
    drop_from_slice_spec,
)
from kubedra.server.registry.rules import RuleStrategy
from kubedra.server.registry.strategy import StrategyContext

Tree = dict[str, Any]
Drop = Callable[[Tree, Tree | None, FeatureGates], None]

_DROPS: dict[str, Drop] = {
    "DeviceClass": drop_from_class_spec,
    "ResourcePoolStatusRequest": drop_from_pool_request_spec,
    "ResourceSlice": drop_from_slice_spec,
}


class DeviceStrategy(RuleStrategy):
    """Kinds from which only fields of disabled features have to be dropped."""

    def __init__(self, kind: Kind[Any]) -> None:
        super().__init__(kind)
        self._drop = _DROPS.get(kind.kind)
        # An answer to a pool request must not overwrite another answer unseen.
        self.allow_unconditional_update = kind.kind != "ResourcePoolStatusRequest"

    def prepare_for_create(self, tree: Tree, context: StrategyContext) -> None:
        """Drops fields of disabled features."""
        if self._drop is not None:
            self._drop(tree.get("spec") or {}, None, context.features)

    def prepare_for_update(self, new: Tree, old: Tree, context: StrategyContext) -> None:
        """Drops fields of disabled features that the stored object did not use."""
        if self._drop is not None and not context.subresource:
            self._drop(new.get("spec") or {}, old.get("spec"), context.features)


class TaintRuleStrategy(DeviceStrategy):
    """DeviceTaintRule: a changed effect counts from the moment of the change."""

    def prepare_for_update(self, new: Tree, old: Tree, context: StrategyContext) -> None:
        """Renews the time of a taint whose effect changed and whose time did not."""
        super().prepare_for_update(new, old, context)
        if context.subresource:
            return
        taint = (new.get("spec") or {}).get("taint") or {}
        before = (old.get("spec") or {}).get("taint") or {}
        if taint.get("effect") != before.get("effect") and taint.get("timeAdded") == before.get("timeAdded"):
            taint["timeAdded"] = context.now
