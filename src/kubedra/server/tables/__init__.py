"""Tables: what `kubectl get` prints, with upstream's columns. See `rendering`."""

from __future__ import annotations

from kubedra.server.tables.rendering import table

__all__ = ["table"]
