"""Reach probes between real listeners on loopback; between nodes they are tested in the lab."""

from __future__ import annotations

import socket

import pytest

from ncclcheck.exchange.probe.reachability import Listeners, Peer, Target, probe_peers

NOBODY: frozenset[str] = frozenset()


@pytest.fixture
def listeners() -> Listeners:
    return Listeners()


def probe_all(
    *targets: Target, own: frozenset[str] = NOBODY, deadline_s: float = 10.0
) -> list[tuple[str, str, str]]:
    """The probes of a peer with these listeners: who listens, kind, outcome."""
    probes = probe_peers("a", own, "n", 1, [Peer(7, "b", targets)], deadline_s)
    return [(one.listener, one.kind, one.outcome) for one in probes]


def probe(
    target: Target, *, ticket: int = 7, nonce: str = "n", own: frozenset[str] = NOBODY
) -> list[tuple[str, str]]:
    probes = probe_peers("a", own, nonce, 1, [Peer(ticket, "b", (target,))], 10.0)
    return [(one.kind, one.outcome) for one in probes]


def test_the_right_node_answers_and_takes_a_block(listeners: Listeners) -> None:
    (target,) = listeners.open([("lo", "127.0.0.1")])
    listeners.admit("n", 7)
    assert probe(target) == [("tcp", "ok"), ("mtu", "ok")]
    listeners.close()


def test_another_node_at_the_address_is_not_a_success(listeners: Listeners) -> None:
    (target,) = listeners.open([("lo", "127.0.0.1")])
    listeners.admit("n", 8)
    assert probe(target) == [("tcp", "wrong-peer")]
    listeners.close()


def test_callers_without_the_nonce_are_turned_away(listeners: Listeners) -> None:
    (target,) = listeners.open([("lo", "127.0.0.1")])
    listeners.admit("n", 7)
    assert probe(target, nonce="guess") == [("tcp", "wrong-peer")]
    listeners.close()


def test_an_address_that_is_my_own_proves_nothing(listeners: Listeners) -> None:
    target = Target("docker0", "172.17.0.1", 4000)
    assert probe(target, own=frozenset({"172.17.0.1"})) == [("tcp", "self")]
    listeners.close()


def test_a_closed_listener_is_refused(listeners: Listeners) -> None:
    (target,) = listeners.open([("lo", "127.0.0.1")])
    listeners.close()
    assert probe(target) == [("tcp", "refused")]


@pytest.mark.slow
def test_a_program_that_says_nothing_is_not_our_peer(listeners: Listeners) -> None:
    listeners.close()
    with socket.create_server(("127.0.0.1", 0)) as foreign:
        target = Target("lo", "127.0.0.1", foreign.getsockname()[1])
        assert probe(target) == [("tcp", "wrong-peer")]


def test_an_address_that_is_not_here_gets_no_listener(listeners: Listeners) -> None:
    assert listeners.open([("eth9", "192.0.2.77")]) == ()
    listeners.close()


@pytest.mark.slow
def test_what_has_no_outcome_at_the_deadline_costs_no_other_its_own(listeners: Listeners) -> None:
    """A server that accepts and says nothing holds its probe; the deadline ends that one only."""
    (target,) = listeners.open([("lo", "127.0.0.1")])
    listeners.admit("n", 7)
    with socket.create_server(("127.0.0.1", 0)) as mute:
        slow = Target("lo", "127.0.0.1", mute.getsockname()[1])
        peers = [Peer(8, "slow", (slow,)), Peer(7, "b", (target,))]
        probes = probe_peers("a", NOBODY, "n", 1, peers, 1.0)
    assert [(one.to_host, one.kind, one.outcome) for one in probes] == [
        ("slow", "tcp", "error"),
        ("b", "tcp", "ok"),
        ("b", "mtu", "ok"),
    ]
    assert "no outcome within 1 s" in probes[0].detail
    listeners.close()


def nccl_at(port: int, address: str = "127.0.0.1") -> Target:
    return Target("lo", address, port, "nccl", 128)


OURS_REACHED = [("ncclcheck", "tcp", "ok"), ("ncclcheck", "mtu", "ok")]


def test_nccls_own_listener_is_called_too_and_hears_nothing(listeners: Listeners) -> None:
    (target,) = listeners.open([("lo", "127.0.0.1")])
    listeners.admit("n", 7)
    with socket.create_server(("127.0.0.1", 0)) as nccl:
        own = nccl_at(nccl.getsockname()[1])
        assert probe_all(own, target) == [*OURS_REACHED, ("nccl", "tcp", "ok")]
        one, _ = nccl.accept()
        with one:
            one.settimeout(5)
            assert one.recv(1) == b""
    assert probe_all(target, own) == [*OURS_REACHED, ("nccl", "tcp", "refused")]
    listeners.close()


def test_nccls_listener_is_not_called_where_ours_was_not_reached(listeners: Listeners) -> None:
    (target,) = listeners.open([("lo", "127.0.0.1")])
    listeners.admit("n", 8)
    with socket.create_server(("127.0.0.1", 0)) as nccl:
        probes = probe_all(target, nccl_at(nccl.getsockname()[1]))
    assert probes == [("ncclcheck", "tcp", "wrong-peer")]
    listeners.close()


def test_nccls_listener_stands_alone_where_none_of_ours_has_its_address(listeners: Listeners) -> None:
    (target,) = listeners.open([("lo", "127.0.0.1")])
    listeners.admit("n", 7)
    with socket.create_server(("127.0.0.2", 0)) as nccl:
        there = nccl_at(nccl.getsockname()[1], "127.0.0.2")
        assert probe_all(there, target) == [*OURS_REACHED, ("nccl", "tcp", "ok")]
        own = frozenset({"127.0.0.2"})
        assert probe_all(there, target, own=own)[-1] == ("nccl", "tcp", "self")
    listeners.close()
