"""Leaf code that every room may use: quantities, versions, names, selectors, gates, YAML, the Clock protocol."""
