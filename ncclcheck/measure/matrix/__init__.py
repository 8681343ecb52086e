"""Which nodes talk well: all pairs of nodes, leaves, the ratio of the bisection, and slow cells (pure)."""
