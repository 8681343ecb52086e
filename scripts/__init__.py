"""Scripts for people who work on ncclcheck; they are no part of the package that is installed."""
