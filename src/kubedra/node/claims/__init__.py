"""Claim preparation: what to ask of drivers for which pod, and what to remember."""
