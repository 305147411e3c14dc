"""Queue, cluster view, filters, scores and binding."""
