"""Leaf code that every room may use: quantities, versions, names, selectors, feature gates, YAML, the Clock protocol."""
