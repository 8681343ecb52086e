"""The attacks of `scripts/attacks`, and the runs that they are tried on."""
