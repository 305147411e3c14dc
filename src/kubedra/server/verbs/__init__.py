"""The verbs of the REST API over stored objects: a file each, the same for every kind."""
