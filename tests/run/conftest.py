"""A real store that every test of this folder uses under a prefix of its own."""

from __future__ import annotations

from itertools import count

import pytest

from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.store.base import Store
from ncclcheck.exchange.store.opening import serve
from ncclcheck.model.fact import Missing
from tests.bench.nodes.benches import client

RUNS = count()


@pytest.fixture(scope="module")
def server() -> Store:
    """The store's server."""
    found = serve(0, "server/", Deadline(60))
    assert not isinstance(found, Missing)
    return found


@pytest.fixture
def prefix() -> str:
    """The test's own."""
    return f"{next(RUNS)}/"


@pytest.fixture
def store(server: Store, prefix: str) -> Store:
    """A client under the test's prefix."""
    return client(server, prefix)
