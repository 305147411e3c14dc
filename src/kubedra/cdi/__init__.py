"""CDI files: write, read, apply to a container (``spec``, ``folder``, ``apply``)."""
