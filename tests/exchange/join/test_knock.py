"""Datagrams between a node that cannot join and node 0, over real sockets."""

from __future__ import annotations

import socket

import pytest

from ncclcheck.exchange.join.knock import PROTOCOL, KnockListener, KnockMessage, send_knock
from ncclcheck.model.codec import encode
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import MasterPath
from ncclcheck.model.snapshot import Knock
from tests.ports import free_port

NOWHERE = Missing("absent")
WAY = MasterPath("node1", 29500, ("10.0.0.1",), False, NOWHERE, NOWHERE, "filtered")


def message(rank: int, *, final: bool, job_id: str = "job") -> KnockMessage:
    return KnockMessage(PROTOCOL, job_id, final, Knock(f"node{rank}", rank, WAY))


@pytest.fixture
def port() -> int:
    return free_port()


def test_node_0_learns_who_gave_up_and_the_knocker_whether_the_store_is_up(port: int) -> None:
    listener = KnockListener(port, "job")
    reply = send_knock(["127.0.0.1"], port, message(2, final=False), 2.0)
    assert reply is not None
    assert not reply.serving
    assert listener.final() == {}
    listener.serving = True
    reply = send_knock(["127.0.0.1"], port, message(2, final=True), 2.0)
    assert reply is not None
    assert reply.serving
    assert listener.final()[2].master.outcome == "filtered"
    listener.close()


def test_knocks_of_another_job_and_garbage_are_not_answered(port: int) -> None:
    listener = KnockListener(port, "job")
    assert send_knock(["127.0.0.1"], port, message(1, final=True, job_id="other"), 0.3) is None
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        for garbage in (b"", b"\x80\x04.", b"{}", b"[" * 4000, encode(message(1, final=True)) + b" " * 5000):
            one.sendto(garbage, ("127.0.0.1", port))
    assert send_knock(["127.0.0.1"], port, message(3, final=True), 2.0) is not None
    assert set(listener.final()) == {3}
    listener.close()


def test_nobody_there_is_no_reply(port: int) -> None:
    assert send_knock(["127.0.0.1"], port, message(1, final=False), 0.3) is None


def test_nodes_without_a_rank_are_told_apart_by_their_host(port: int) -> None:
    listener = KnockListener(port, "job", 4)
    for host in ("a", "b", "a"):
        knock = KnockMessage(PROTOCOL, "job", True, Knock(host, -1, WAY))
        assert send_knock(["127.0.0.1"], port, knock, 2.0) is not None
    assert {rank: knock.host for rank, knock in listener.final().items()} == {3: "a", 2: "b"}
    assert [knock.node_rank for knock in listener.final().values()] == [3, 2]
    listener.close()


def test_a_closed_listener_leaves_its_port(port: int) -> None:
    KnockListener(port, "job").close()
    again = KnockListener(port, "job")
    assert send_knock(["127.0.0.1"], port, message(1, final=True), 2.0) is not None
    again.close()
