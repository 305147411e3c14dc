"""Which API objects may exist: a file per kind."""
