"""A real store for the pairs, under a prefix of each test's own."""

from tests.run.conftest import prefix, server

__all__ = ["prefix", "server"]
