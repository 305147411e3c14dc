"""Recorded scenarios in which we differ from kube-scheduler and kube-controller-manager 1.36.2 on purpose, and why."""

from __future__ import annotations

EXCEPTIONS: dict[str, str] = {}
