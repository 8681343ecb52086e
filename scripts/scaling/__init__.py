"""A run of many nodes on one machine: the real node 0, and simulated nodes."""
