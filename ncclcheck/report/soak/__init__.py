"""The report of a soak."""
