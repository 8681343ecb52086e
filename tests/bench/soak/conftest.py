"""The real store that the tests of a run use, too."""

from __future__ import annotations

from tests.run.conftest import prefix, server, store

__all__ = ["prefix", "server", "store"]
