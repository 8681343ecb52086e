"""Several nodes on one machine: network namespaces, real faults, real launchers."""
