"""Which node a pod goes to, and which devices it gets there: queue, cluster view, filters, scores, claims, binding."""
