"""A soak on one rank, and its record on node 0."""
