"""The Kubernetes API as data: generated types, the schema table, kinds and paths, errors, defaults, conversion."""
