"""DRA drivers that come with kubedra; they reach the cluster through the SDK alone."""
