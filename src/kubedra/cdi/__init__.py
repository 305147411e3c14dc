"""Container Device Interface files: write, read, apply."""
