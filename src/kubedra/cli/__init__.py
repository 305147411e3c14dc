"""The kubedra command."""
