"""Which devices satisfy which claims."""
