"""Ports that are spread over the kernel's range, and what it means where some of them do not answer."""

from __future__ import annotations

import asyncio
import socket

from ncclcheck.exchange.probe.further_ports import (
    FURTHER_PORTS,
    _ports_in,
    _quarters,
    dial_ports,
    spread_sockets,
    with_further,
)
from ncclcheck.model.fact import Missing
from ncclcheck.model.snapshot import Probe

FIRST = Probe("tcp", "node01", "node02", "eth0", "10.0.0.2", 33000, "ok", 12.0, "us")
GONE = Missing("absent", "")


def test_there_is_one_port_in_each_quarter_of_the_range() -> None:
    bound = spread_sockets("127.0.0.1")
    ports = [listener.getsockname()[1] for listener in bound]
    for listener in bound:
        listener.close()
    assert len(ports) == FURTHER_PORTS
    assert ports == sorted(ports)


def test_the_range_is_cut_in_four_and_the_outer_ports_are_at_its_ends() -> None:
    assert _quarters("32768\t60999\n") == [
        range(32768, 32832),
        range(39826, 46884),
        range(46884, 53942),
        range(60936, 61000),
    ]
    assert _quarters("5000 5007") == [
        range(5000, 5002),
        range(5002, 5004),
        range(5004, 5006),
        range(5006, 5008),
    ]
    assert _quarters("5000 5003") == _quarters("nonsense") == _quarters(GONE) == []


def test_reserved_ports_are_read_as_the_kernel_writes_them() -> None:
    assert _ports_in("4000,5000-5002\n") == {4000, 5000, 5001, 5002}
    assert _ports_in("\n") == _ports_in(GONE) == frozenset()


def test_what_connects_and_what_does_not_is_told_by_port() -> None:
    with socket.create_server(("127.0.0.1", 0)) as open_one, socket.create_server(("127.0.0.1", 0)) as gone:
        ports = [open_one.getsockname()[1], gone.getsockname()[1]]
        gone.close()
        found = asyncio.run(dial_ports("127.0.0.1", ports, asyncio.Semaphore(1)))
    assert [found[port][0] for port in ports] == ["ok", "refused"]


def test_where_all_answer_nothing_is_added() -> None:
    assert with_further(FIRST, {40000: ("ok", ""), 50000: ("ok", "")}) == [FIRST]


def test_closed_ports_of_a_listener_that_is_reached_are_another_probe() -> None:
    first, blocked = with_further(
        FIRST, {40000: ("ok", ""), 50000: ("refused", "r"), 60000: ("filtered", "f")}
    )
    assert first == FIRST
    assert (blocked.port, blocked.outcome, blocked.value) == (60000, "filtered", None)
    assert (blocked.open_ports, blocked.closed_ports) == ((33000, 40000), (50000, 60000))
    assert blocked.detail == "f; 33000, 40000 answered"


def test_open_ports_of_a_listener_that_is_not_reached_are_told_with_it() -> None:
    lost = Probe("tcp", "node01", "node02", "eth0", "10.0.0.2", 33000, "filtered", detail="no answer")
    (told,) = with_further(lost, {40000: ("ok", ""), 50000: ("filtered", "f")})
    assert (told.port, told.closed_ports) == (33000, (33000, 50000))
    assert told.detail == "no answer; 40000 answered"
    assert with_further(lost, {40000: ("filtered", "f")}) == [lost]


def test_a_port_without_outcome_says_nothing() -> None:
    assert with_further(FIRST, {40000: ("error", "too many open files")}) == [FIRST]
