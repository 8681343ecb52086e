"""A real store that every test of this folder uses under a prefix of its own."""

from __future__ import annotations

from itertools import count

import pytest

from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.store.tcp import TcpStore, serve
from tests.run.benches import client

RUNS = count()


@pytest.fixture(scope="module")
def server() -> TcpStore:
    """The store's server."""
    found = serve(0, "server/", Deadline(60))
    assert isinstance(found, TcpStore)
    return found


@pytest.fixture
def prefix() -> str:
    """The test's own."""
    return f"{next(RUNS)}/"


@pytest.fixture
def store(server: TcpStore, prefix: str) -> TcpStore:
    """A client under the test's prefix."""
    return client(server, prefix)
