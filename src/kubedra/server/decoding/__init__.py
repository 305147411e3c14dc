"""From the bytes of a request to a plain tree that is known to fit the schema."""
