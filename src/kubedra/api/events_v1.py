"""Kubernetes 1.37, events/v1: written by tools/generate_api.py, do not edit."""

from __future__ import annotations

from msgspec import Struct

from kubedra.api import core_v1, meta_v1


class Event(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    action: str = ""
    api_version: str = ""
    deprecated_count: int | None = None
    deprecated_first_timestamp: str = ""
    deprecated_last_timestamp: str = ""
    deprecated_source: core_v1.EventSource | None = None
    event_time: str = ""
    kind: str = ""
    metadata: meta_v1.ObjectMeta = meta_v1.ObjectMeta()
    note: str = ""
    reason: str = ""
    regarding: core_v1.ObjectReference | None = None
    related: core_v1.ObjectReference | None = None
    reporting_controller: str = ""
    reporting_instance: str = ""
    series: EventSeries | None = None
    type: str = ""


class EventSeries(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    count: int = 0
    last_observed_time: str = ""
