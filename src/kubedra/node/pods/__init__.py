"""Pods on the node: environment, volumes, lifecycle, status, and the worker that carries it out."""
