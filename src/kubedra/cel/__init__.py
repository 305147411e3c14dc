"""The selector language of Dynamic Resource Allocation."""
