"""Device plugins: how devices are handed out on nodes that have not moved to DRA."""
