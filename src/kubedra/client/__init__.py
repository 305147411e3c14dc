"""One Client protocol over HTTPS or in process, with watch caches, leases and events."""
