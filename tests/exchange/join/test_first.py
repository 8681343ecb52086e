"""Node 0's own start, with real sockets."""

from __future__ import annotations

import os
import socket

import pytest
from msgspec.structs import replace

from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.join.first import hold_port, is_led_elsewhere, listen, own_path
from ncclcheck.exchange.probe.dial import dial
from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.memory import MemoryBackend
from ncclcheck.exchange.store.opening import join, serve, within_process
from ncclcheck.model.fact import Missing
from tests.fact_builders import launch, master_path


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
    way = own_path(replace(launch(0, 2), master_addr="127.0.0.1"), frozenset(), Deadline(5))
    assert way.outcome == "loopback"  # two nodes: the other one would look for node 0 on itself
    assert way.detail == "127.0.0.1 is a loopback address: other nodes would look for node 0 on themselves"
    way = own_path(replace(launch(0, 2), master_addr="192.0.2.8"), frozenset({"192.0.2.8"}), Deadline(5))
    assert way.outcome == "serving"


def test_a_name_that_leads_elsewhere_is_not_this_node() -> None:
    way = own_path(replace(launch(0, 2), master_addr="192.0.2.9"), frozenset({"192.0.2.8"}), Deadline(5))
    assert way.outcome == "not-first-node"
    assert "192.0.2.9" in way.detail


@pytest.mark.parametrize(
    ("there", "came", "is_led"),
    [
        pytest.param(b"another run", False, True, id="another-process-leads-there"),
        pytest.param(b"this run", False, False, id="it-leads-back-here"),
        pytest.param(None, False, False, id="nobody-leads-there"),
        pytest.param(b"another run", True, False, id="somebody-joined-here"),
    ],
)
def test_a_second_process_that_leads_the_same_job_is_found(
    there: bytes | None, came: bool, is_led: bool
) -> None:
    own, theirs = within_process(MemoryBackend(), 0), within_process(MemoryBackend(), 0)
    own.set(keys.SERVING, b"this run")
    if there is not None:
        theirs.set(keys.SERVING, there)
    if came:
        own.add(keys.TICKETS, 1)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        here, port = ("127.0.0.1",), listener.getsockname()[1]
        way = replace(master_path(0, outcome="not-first-node"), addresses=here, port=port)
        assert is_led_elsewhere(way, lambda *_: theirs, own, Deadline(0.5)) is is_led


def test_a_node_0_whose_own_address_it_is_looks_nowhere_else() -> None:
    own = within_process(MemoryBackend(), 0)
    assert not is_led_elsewhere(master_path(0), lambda *_: own, own, Deadline(0.5))
