"""What a controller's decision says to do, as data; carried out in one place.

A decide function returns these; its tests compare them and need no server.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kubedra.api.kinds import Kind
from kubedra.client.events import EventRecorder
from kubedra.client.protocol import Client, PatchType


@dataclass(frozen=True, slots=True)
class Create:
    """Create an object from a tree."""

    kind: Kind[Any]
    tree: dict[str, Any]
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class Patch:
    """Patch an object or its status; put uid and resourceVersion into the patch as preconditions."""

    kind: Kind[Any]
    name: str
    namespace: str
    patch: Any
    patch_type: PatchType = "merge"
    subresource: str = ""
    field_manager: str = ""
    force: bool = False


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete an object, if it is still the one that was meant."""

    kind: Kind[Any]
    name: str
    namespace: str
    uid: str = ""
    resource_version: str = ""
    propagation_policy: str = ""
    grace_period_seconds: int | None = None


@dataclass(frozen=True, slots=True)
class Tell:
    """Record an event about an object."""

    regarding: Any = field(repr=False)
    kind: Kind[Any]
    type: str
    reason: str
    note: str
    action: str = ""


Action = Create | Patch | Delete | Tell


async def perform(client: Client, recorder: EventRecorder, action: Action) -> Any:
    """Carry out one action; returns the written object, None for deletions and events. Raises ApiError."""
    match action:
        case Create():
            return await client.create(action.kind, action.tree, action.namespace)
        case Patch():
            return await client.patch(
                action.kind,
                action.name,
                action.patch,
                action.namespace,
                patch_type=action.patch_type,
                subresource=action.subresource,
                field_manager=action.field_manager,
                force=action.force,
            )
        case Delete():
            await client.delete(
                action.kind,
                action.name,
                action.namespace,
                uid=action.uid,
                resource_version=action.resource_version,
                propagation_policy=action.propagation_policy,
                grace_period_seconds=action.grace_period_seconds,
            )
            return None
        case Tell():
            recorder.event(action.regarding, action.kind, action.type, action.reason, action.note, action.action)
            return None
