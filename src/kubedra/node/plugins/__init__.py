"""Plugins of the node: who registered, who is connected, who is gone."""
