"""Node 0's own start, with real sockets."""

from __future__ import annotations

import os
import socket

import pytest
from msgspec.structs import replace

from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.join.first import hold_port, listen, own_way
from ncclcheck.exchange.probe.dial import dial
from ncclcheck.exchange.store.opening import join, serve
from ncclcheck.model.fact import Missing
from tests.fact_builders import launch


def test_a_free_port_is_held_and_listens_when_told_so() -> None:
    held = hold_port(0)
    assert isinstance(held, socket.socket)
    port = held.getsockname()[1]
    with held:
        assert dial(["127.0.0.1"], port, Deadline(2))[0] == "refused"
        assert listen(held) is None
        assert dial(["127.0.0.1"], port, Deadline(2))[0] == "connected"


def test_a_port_that_is_held_names_the_holder() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        trouble = hold_port(other.getsockname()[1])
    assert not isinstance(trouble, socket.socket)
    assert trouble[0] == "port-in-use"
    assert f"pid {os.getpid()}" in trouble[1]


@pytest.mark.slow  # imports torch
def test_a_store_takes_over_the_held_port_with_those_who_already_called() -> None:
    held = hold_port(0)
    assert isinstance(held, socket.socket)
    assert listen(held) is None
    port = held.getsockname()[1]
    with socket.create_connection(("127.0.0.1", port)):
        store = serve(held, "run/", Deadline(60))
        assert not isinstance(store, Missing)
        assert store.port == port
        assert not isinstance(join("127.0.0.1", port, "run/", Deadline(10)), Missing)


def test_a_name_that_is_this_node_is_served() -> None:
    way = own_way(replace(launch(0, 2), master_addr="127.0.0.1"), frozenset(), Deadline(5))
    assert way.outcome == "loopback"  # two nodes: the other one would look for node 0 on itself
    assert way.detail == "127.0.0.1 is a loopback address: other nodes would look for node 0 on themselves"
    way = own_way(replace(launch(0, 2), master_addr="192.0.2.8"), frozenset({"192.0.2.8"}), Deadline(5))
    assert way.outcome == "serving"


def test_a_name_that_leads_elsewhere_is_not_this_node() -> None:
    way = own_way(replace(launch(0, 2), master_addr="192.0.2.9"), frozenset({"192.0.2.8"}), Deadline(5))
    assert way.outcome == "not-first-node"
    assert "192.0.2.9" in way.detail
