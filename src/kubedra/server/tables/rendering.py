"""Renders records as a Table (`Accept: …;as=Table`): columns of the kind, a row per object.

Upstream counterpart: apiserver/pkg/registry/rest/table.go and pkg/printers/tablegenerator.go.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from kubedra.base.clock import parse_time
from kubedra.server.calls import Call
from kubedra.server.store import Record
from kubedra.server.tables import columns
from kubedra.server.tables.cells import age

Tree = dict[str, Any]


def table(call: Call, records: list[Record], meta: Tree, version: str = "v1") -> Tree:
    """The Table of the records."""
    served, now = call.served, call.state.clock.now()
    layout = columns.layout(served.storage)
    include = call.option("includeObject") or "Metadata"
    rows = []
    for record in records:
        tree = record.shared_tree()
        row: Tree = {"cells": layout.cells(tree, now)}
        if include == "Metadata":
            row["object"] = {
                "kind": "PartialObjectMetadata",
                "apiVersion": f"meta.k8s.io/{version}",
                "metadata": tree["metadata"],
            }
        elif include == "Object":
            row["object"] = served.from_storage(record.tree())
        else:
            row["object"] = None
        rows.append(row)
    definitions = [] if call.option("includeHeaders") == "false" else layout.definitions
    return {
        "kind": "Table",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": meta,
        "columnDefinitions": definitions,
        "rows": rows,
    }


def age_of(text: str, now: datetime | None = None) -> str:
    """How long ago a time was, as kubectl writes it."""
    return age(parse_time(text), now or datetime.now(UTC)) if text else "<unknown>"
