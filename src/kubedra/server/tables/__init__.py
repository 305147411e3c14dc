"""Tables: what `kubectl get` prints, with upstream's columns. See `rendering`."""

from __future__ import annotations

from kubedra.server.tables.rendering import row_maker, table

__all__ = ["row_maker", "table"]
