"""How containers run: the Runtime protocol, the supervisor, and the process and bwrap runtimes."""
