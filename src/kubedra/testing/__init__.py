"""For tests of kubedra and of what is built on it: fakes, clusters and contract checkers."""
