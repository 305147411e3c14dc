"""Server-side apply: field ownership (``managedFields``) and merging by the schema."""
