"""Renders records as a Table (`Accept: …;as=Table`): columns of the kind, a row per object.

Upstream counterpart: apiserver/pkg/registry/rest/table.go and pkg/printers/tablegenerator.go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubedra.server.calls import Call
from kubedra.server.store import Record
from kubedra.server.tables import columns

Tree = dict[str, Any]


def row_maker(call: Call, version: str = "v1") -> Callable[[Record], Tree]:
    """A function that makes the row of a record, for one request."""
    served, now = call.served, call.state.clock.now()
    layout = columns.layout(served.storage)
    include = call.option("includeObject") or "Metadata"

    def row(record: Record) -> Tree:
        tree = record.tree()
        made: Tree = {"cells": layout.cells(tree, now), "object": None}
        if include == "Metadata":
            made["object"] = {
                "kind": "PartialObjectMetadata",
                "apiVersion": f"meta.k8s.io/{version}",
                "metadata": tree["metadata"],
            }
        elif include == "Object":
            made["object"] = served.from_storage(tree)
        return made

    return row


def table(call: Call, records: list[Record], meta: Tree, version: str = "v1") -> Tree:
    """The Table of the records."""
    layout = columns.layout(call.served.storage)
    row = row_maker(call, version)
    definitions = [] if call.option("includeHeaders") == "false" else layout.definitions
    return {
        "kind": "Table",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": meta,
        "columnDefinitions": definitions,
        "rows": [row(record) for record in records],
    }
