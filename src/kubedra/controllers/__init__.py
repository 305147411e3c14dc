"""Controllers, a file each, under one shell."""
