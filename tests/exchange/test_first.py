"""Node 0's own start, with real sockets."""

from __future__ import annotations

import os
import socket

from msgspec.structs import replace

from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.first import own_way, port_trouble
from tests.builders import launch


def test_a_free_port_is_no_trouble() -> None:
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
    assert port_trouble(port) is None


def test_a_port_that_is_held_names_the_holder() -> None:
    with socket.create_server(("127.0.0.1", 0)) as held:
        trouble = port_trouble(held.getsockname()[1])
    assert trouble is not None
    assert trouble[0] == "port-in-use"
    assert f"pid {os.getpid()}" in trouble[1]


def test_a_name_that_is_this_node_is_served() -> None:
    way = own_way(replace(launch(0, 2), master_addr="127.0.0.1"), frozenset(), Deadline(5))
    assert way.outcome == "loopback"  # two nodes: the other one would look for node 0 on itself
    way = own_way(replace(launch(0, 2), master_addr="192.0.2.8"), frozenset({"192.0.2.8"}), Deadline(5))
    assert way.outcome == "serving"


def test_a_name_that_leads_elsewhere_is_not_this_node() -> None:
    way = own_way(replace(launch(0, 2), master_addr="192.0.2.9"), frozenset({"192.0.2.8"}), Deadline(5))
    assert way.outcome == "not-first-node"
    assert "192.0.2.9" in way.detail
