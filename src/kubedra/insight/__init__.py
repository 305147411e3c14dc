"""Read-only answers for people: why, and how things hang together."""
