"""Datagrams between a node that cannot join and node 0, over real sockets."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Collection
from contextlib import suppress

import pytest
from msgspec.structs import replace

from ncclcheck.exchange.join.knock import (
    PROTOCOL,
    Knocked,
    KnockListener,
    KnockMessage,
    send_knock,
    unproven_reply,
)
from ncclcheck.exchange.trust.run_key import RunKey, new_key
from ncclcheck.exchange.trust.trust import Trust
from ncclcheck.model.codec import encode
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import MasterPath
from ncclcheck.model.snapshot import Knock
from tests.ports import free_port

NOWHERE = Missing("absent")
WAY = MasterPath("node1", 29500, ("10.0.0.1",), False, NOWHERE, NOWHERE, "filtered")


def message(rank: int, *, final: bool, job_id: str = "job") -> KnockMessage:
    return KnockMessage(PROTOCOL, job_id, final, Knock(f"node{rank}", rank, WAY))


def at(port: int, key: RunKey | None = None) -> Knocked:
    return Knocked(["127.0.0.1"], port, Trust(key))


@pytest.fixture
def port() -> int:
    return free_port()


def test_node_0_learns_who_gave_up_and_the_knocker_whether_the_store_is_up(port: int) -> None:
    listener = KnockListener(port, "job")
    reply = send_knock(at(port), message(2, final=False), 2.0)
    assert reply is not None
    assert not reply.serving
    assert listener.final() == {}
    listener.serving = True
    reply = send_knock(at(port), message(2, final=True), 2.0)
    assert reply is not None
    assert reply.serving
    assert listener.final()[2].master.outcome == "filtered"
    listener.close()


def test_knocks_of_another_job_and_garbage_are_not_answered(port: int) -> None:
    listener = KnockListener(port, "job")
    assert send_knock(at(port), message(1, final=True, job_id="other"), 0.3) is None
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        for garbage in (b"", b"\x80\x04.", b"{}", b"[" * 4000, encode(message(1, final=True)) + b" " * 5000):
            one.sendto(garbage, ("127.0.0.1", port))
    assert send_knock(at(port), message(3, final=True), 2.0) is not None
    assert set(listener.final()) == {3}
    listener.close()


def test_nobody_there_is_no_reply(port: int) -> None:
    assert send_knock(at(port), message(1, final=False), 0.3) is None


def test_nodes_without_a_rank_are_told_apart_by_their_host(port: int) -> None:
    listener = KnockListener(port, "job", 4)
    for host in ("a", "b", "a"):
        knock = KnockMessage(PROTOCOL, "job", True, Knock(host, -1, WAY))
        assert send_knock(at(port), knock, 2.0) is not None
    assert {rank: knock.host for rank, knock in listener.final().items()} == {3: "a", 2: "b"}
    assert [knock.node_rank for knock in listener.final().values()] == [3, 2]
    listener.close()


def test_a_closed_listener_leaves_its_port(port: int) -> None:
    KnockListener(port, "job").close()
    again = KnockListener(port, "job")
    assert send_knock(at(port), message(1, final=True), 2.0) is not None
    again.close()


def test_with_a_key_only_members_are_heard_and_answered(port: int) -> None:
    key = new_key("a test")
    trust = Trust(key)
    listener = KnockListener(port, "job", trust=trust)
    for stranger in (None, new_key("another")):
        assert send_knock(at(port, stranger), message(1, final=True), 0.3) is None
    assert listener.final() == {}
    assert send_knock(at(port, key), message(2, final=True), 2.0) is not None
    assert set(listener.final()) == {2}
    assert sorted(foreign.cause for foreign in trust.authentication().foreign) == ["no-key", "other-key"]
    listener.close()


def test_a_knock_of_another_run_with_the_same_key_is_not_taken_again(port: int) -> None:
    key = new_key("a test")
    heard: list[bytes] = []
    listener = KnockListener(port, "job", trust=Trust(key))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as between:
        between.bind(("127.0.0.1", 0))
        between.settimeout(5.0)

        def pass_on() -> None:
            while len(heard) < 2:
                data, sender = between.recvfrom(8192)
                heard.append(data)
                with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as further:
                    further.settimeout(5.0)
                    further.sendto(data, ("127.0.0.1", port))
                    between.sendto(further.recv(8192), sender)

        thread = threading.Thread(target=pass_on)
        thread.start()
        assert send_knock(at(between.getsockname()[1], key), message(2, final=True), 5.0) is not None
        thread.join(10)
        listener.close()
        trust = Trust(key)
        later = KnockListener(port, "job", trust=trust)
        for data in heard:
            between.sendto(data, ("127.0.0.1", port))
            assert between.recv(8192) != b""
        assert later.final() == {}
        later.close()
    assert [foreign.cause for foreign in trust.authentication().foreign] == ["other-key"]


def test_who_gets_no_answer_learns_that_its_requests_arrived(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: set[str] = set()
    monkeypatch.setattr(
        "ncclcheck.exchange.join.knock.half_open", lambda ports: seen if ports == {port} else set()
    )
    listener = KnockListener(port, "job")
    reply = send_knock(at(port), message(1, final=True), 2.0)
    assert reply is not None
    assert not reply.answers_lost
    seen.add("127.0.0.1")
    reply = send_knock(at(port), message(2, final=True), 2.0)
    assert reply is not None
    assert reply.answers_lost
    assert [listener.final()[rank].master.answers_lost for rank in (1, 2)] == [False, True]
    listener.close()


def test_of_ranks_that_the_job_does_not_have_and_long_lists_nothing_is_kept(port: int) -> None:
    listener = KnockListener(port, "job", 3)
    addresses = tuple(f"10.0.{number}.1" for number in range(150))
    endless = replace(WAY, addresses=addresses, detail="x" * 1000)
    for rank in (1, 2, 77, 10**6, -5):
        knock = KnockMessage(PROTOCOL, "job", True, Knock("node9", rank, endless))
        assert send_knock(at(port), knock, 2.0) is not None
    kept = listener.final()
    assert set(kept) <= {1, 2, 3}
    assert {1, 2} <= set(kept)
    assert all(knock.master.addresses == addresses[:8] for knock in kept.values())
    assert {len(knock.master.detail) for knock in kept.values()} == {300}
    listener.close()


def test_datagrams_without_end_read_the_kernels_table_now_and_then(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[float] = []

    def slow(_ports: Collection[int]) -> frozenset[str]:
        looks.append(time.monotonic())
        time.sleep(0.2)
        return frozenset({"127.0.0.1"})

    monkeypatch.setattr("ncclcheck.exchange.join.knock.half_open", slow)
    listener = KnockListener(port, "job")
    for _ in range(50):
        reply = send_knock(at(port), message(1, final=False), 5.0)
        assert reply is not None
        assert reply.answers_lost
    assert len(looks) < 50
    listener.close()


def test_what_others_send_in_between_does_not_hide_the_answer_of_node_0(port: int) -> None:
    """A stranger who can forge node 0's address answers first; the answer that proves the key counts."""
    key = new_key("a test")
    listener = KnockListener(port, "job", trust=Trust(key))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as between:
        between.bind(("127.0.0.1", 0))
        between.settimeout(5.0)

        def pass_on() -> None:
            with suppress(OSError):
                while True:
                    data, sender = between.recvfrom(8192)
                    for garbage in (b"{", b"garbage", b"x" * 4000):
                        between.sendto(garbage, sender)
                    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as further:
                        further.settimeout(5.0)
                        further.sendto(data, ("127.0.0.1", port))
                        between.sendto(further.recv(8192), sender)

        threading.Thread(target=pass_on, daemon=True).start()
        assert send_knock(at(between.getsockname()[1], key), message(2, final=True), 5.0) is not None
    assert set(listener.final()) == {2}
    listener.close()


def test_a_stranger_who_answers_without_end_costs_no_more_than_silence(port: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        stranger.bind(("127.0.0.1", port))

        def babble() -> None:
            with suppress(OSError):
                _, sender = stranger.recvfrom(8192)
                while True:
                    stranger.sendto(b"garbage", sender)

        threading.Thread(target=babble, daemon=True).start()
        began = time.monotonic()
        assert send_knock(at(port, new_key("a test")), message(2, final=True), 0.3) is None
        assert time.monotonic() - began < 10


def refusal(rank: int, why: str = "this node does not use its key") -> KnockMessage:
    way = replace(WAY, outcome="other-key", detail=why)
    return KnockMessage(PROTOCOL, "job", True, Knock(f"node{rank}", rank, way))


def test_a_refusal_without_the_key_is_quoted_once_and_gives_up_no_node(port: int) -> None:
    trust, said = Trust(new_key("--key-file")), list[str]()
    listener = KnockListener(port, "job", 4, trust)
    listener.say = said.append
    for _ in range(2):
        assert send_knock(at(port), refusal(2, "its key\x1b[2J"), 2.0) is not None
    assert send_knock(at(port), message(3, final=True), 0.3) is None  # of nothing else is any notice taken
    assert listener.final() == {}
    foreign = trust.authentication().foreign
    assert [(claim.said, claim.node_rank, claim.refuses) for claim in foreign] == [("node2", 2, "its key[2J")]
    assert len(said) == 1
    assert "node2 at 127.0.0.1 says that it does not take part" in said[0]
    listener.close()


def test_a_refusal_with_the_key_gives_up_the_node(port: int) -> None:
    key = new_key("--key-file")
    listener = KnockListener(port, "job", 4, Trust(key))
    assert send_knock(at(port, key), refusal(2), 2.0) is not None
    assert set(listener.final()) == {2}
    listener.close()


def test_what_a_node_0_without_the_key_answers_is_only_a_claim(port: int) -> None:
    listener = KnockListener(port, "job", 4)
    listener.given_up, listener.answers_unread = "its key file is missing", True
    asking = at(port, new_key("--key-file"))
    assert send_knock(asking, message(2, final=False), 0.3) is None
    claim = unproven_reply(asking.trust)
    assert claim is not None
    assert claim.given_up == "its key file is missing"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as short:  # no answer is longer than what came
        short.settimeout(0.3)
        short.sendto(b"x" * 40, ("127.0.0.1", port))
        with pytest.raises(TimeoutError):
            short.recv(4096)
    listener.close()
