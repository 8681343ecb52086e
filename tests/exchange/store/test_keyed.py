"""The store of a run with a key, over real sockets: members use it, strangers do not."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress

import pytest

from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.store.base import Store
from ncclcheck.exchange.store.deadline_store import DeadlineStore
from ncclcheck.exchange.store.keyed import KeyedStore, join_keyed
from ncclcheck.exchange.store.keyed_server import BURST, MOST_STRANGERS, KeyedServer, Served, SourceGate
from ncclcheck.exchange.store.memory import MemoryBackend
from ncclcheck.exchange.store.recording import RecordingStore
from ncclcheck.exchange.trust.handshake import Caller, introduced, read_banner, session_of
from ncclcheck.exchange.trust.run_key import RunKey, new_key
from ncclcheck.exchange.trust.trust import Trust
from ncclcheck.model.codec import encode
from ncclcheck.model.fact import Missing
from ncclcheck.model.snapshot import StoreChanged
from ncclcheck.run.doubts import store_changes

KEY = new_key("a test")
CALLER = Caller("job/", "node2", 1)


@contextmanager
def served(trust: Trust, memory: MemoryBackend | None = None) -> Iterator[tuple[Store, tuple[str, int]]]:
    held = socket.socket()
    held.bind(("127.0.0.1", 0))
    store = serve_keyed(held, Served(memory or MemoryBackend(), KEY, trust, "job/", ranks_port=29))
    try:
        yield store, held.getsockname()
    finally:
        store.close()


def serve_keyed(held: socket.socket, served: Served) -> Store:
    return KeyedStore(served.memory, served.ranks_port, KeyedServer(held, served))


def joined(address: tuple[str, int], key: RunKey | None = KEY, prefix: str = "job/") -> Store | Missing:
    return join_keyed(address, Trust(key), Caller(prefix, "node2", 1), Deadline(3.0))


def member(address: tuple[str, int]) -> Store:
    store = joined(address)
    assert not isinstance(store, Missing), store
    return store


def dialled(address: tuple[str, int]) -> socket.socket:
    return socket.create_connection(address, 5.0)


def is_closed(connection: socket.socket) -> bool:
    connection.settimeout(10.0)
    with suppress(ConnectionError):
        while connection.recv(4096):
            pass
    return True


def test_members_share_values_counters_and_documents() -> None:
    trust = Trust(KEY)
    large = bytes(range(256)) * 5000
    with (
        served(trust) as (own, address),
        closing(member(address)) as first,
        closing(member(address)) as second,
    ):
        assert first.port == 29
        assert (first.add("tickets", 1), second.add("tickets", 1), own.add("tickets", 0)) == (1, 2, 2)
        assert own.set_document("report", large) is None
        assert first.get_document("report") == large
        assert second.set_document("facts/2", large) is None
        assert own.get_document("facts/2") == large
        assert first.wait("nothing", Deadline(0.05)) == Missing("timeout", "nothing did not come in time")
    assert trust.authentication().foreign == ()


@pytest.mark.parametrize("key", [None, new_key("another")])
def test_another_key_or_none_is_denied_and_named(key: RunKey | None) -> None:
    trust = Trust(KEY)
    with served(trust) as (_, address):
        found = joined(address, key)
    assert isinstance(found, Missing)
    assert found.missing == "denied"
    (foreign,) = trust.authentication().foreign
    assert (foreign.cause, foreign.said, foreign.node_rank) == ("other-key" if key else "no-key", "node2", 1)


def test_another_job_is_told_as_that() -> None:
    with served(Trust(KEY)) as (_, address):
        found = join_keyed(address, Trust(KEY), Caller("other/", "node2", 1), Deadline(1.5))
    assert found == Missing("error", "the store of another job answers there")


def test_a_job_that_was_named_stays_the_answer_where_the_deadline_cuts_the_next_attempt() -> None:
    with served(Trust(KEY)) as (_, address), dialled(address) as wire:
        line = wire.makefile("rb").readline()
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as beside:
        found = beside.submit(
            join_keyed, listener.getsockname(), Trust(KEY), Caller("other/", "node2", 1), Deadline(1.5)
        )
        with listener.accept()[0] as first:
            first.sendall(line)
            with listener.accept()[0]:  # which says nothing
                assert found.result(20.0) == Missing("error", "the store of another job answers there")


def test_garbage_and_huge_frames_are_dropped_at_once_and_counted() -> None:
    trust = Trust(KEY)
    with served(trust) as (own, address):
        for data in (b"GET / HTTP/1.0\r\n\r\n", b"\0" * 100_000, b"[" * 5000 + b"\n", b'{"protocol":1}\n'):
            with dialled(address) as stranger:
                with suppress(ConnectionError):
                    stranger.sendall(data + b"\n")
                assert is_closed(stranger)
        assert isinstance(own.get("tickets"), Missing)
        assert own.lost is None
    assert [(foreign.cause, foreign.count) for foreign in trust.authentication().foreign] == [("no-key", 4)]


def test_a_line_that_is_repeated_ends_the_connection_and_changes_nothing() -> None:
    memory = MemoryBackend()
    trust = Trust(KEY)
    with served(trust, memory) as (_, address), dialled(address) as wire:
        stream = wire.makefile("rwb")
        banner = read_banner(stream.readline())
        assert banner is not None
        said = introduced(banner, CALLER, KEY)
        stream.write(encode(said) + b"\n")
        stream.flush()
        assert json.loads(stream.readline())["ranks_port"] == 29
        call = encode({"id": 1, "op": "add", "key": "tickets", "amount": 1})
        line = session_of(banner, said, KEY, is_caller=True).sends.seal(call) + b"\n"
        stream.write(line + line)
        stream.flush()
        assert stream.readline() != b""
        assert is_closed(wire)
    assert memory.read("tickets") == b"1"
    assert [foreign.cause for foreign in trust.authentication().foreign] == ["damaged"]


def test_an_introduction_of_another_connection_is_refused() -> None:
    with served(Trust(KEY)) as (_, address), dialled(address) as first, dialled(address) as second:
        banner = read_banner(first.makefile("rb").readline())
        assert banner is not None
        second.sendall(encode(introduced(banner, CALLER, KEY)) + b"\n")
        answers = second.makefile("rb")
        answers.readline()
        assert json.loads(answers.readline())["refused"] == "other-key"


def test_a_flood_from_one_address_is_cut_and_others_come_in() -> None:
    gate = SourceGate()
    taken = sum(gate.admits("10.0.0.9") for _ in range(5000))
    assert BURST <= taken < BURST + 500
    assert gate.admits("10.0.0.2")
    assert gate.admits("2001:db8:0:1::1")
    for number in range(5000):
        gate.admits(f"2001:db8:0:1::{number:x}")
    assert not gate.admits("2001:db8:0:1::ffff")


def test_too_many_silent_strangers_do_not_keep_a_member_out() -> None:
    with served(Trust(KEY)) as (_, address):
        strangers = [dialled(address) for _ in range(MOST_STRANGERS + 50)]
        try:
            with closing(member(address)) as store:
                assert store.add("tickets", 1) == 1
            assert is_closed(strangers[0])
        finally:
            for stranger in strangers:
                stranger.close()


def test_who_does_not_read_the_answers_is_not_answered_without_end() -> None:
    memory = MemoryBackend()
    memory.set("large", bytes(1 << 20))
    with served(Trust(KEY), memory) as (own, address), dialled(address) as wire:
        stream = wire.makefile("rwb")
        banner = read_banner(stream.readline())
        assert banner is not None
        said = introduced(banner, CALLER, KEY)
        stream.write(encode(said) + b"\n")
        stream.flush()
        stream.readline()
        lines = session_of(banner, said, KEY, is_caller=True).sends
        wire.settimeout(1.0)
        calls = (encode({"id": number, "op": "read", "key": "large"}) for number in range(200_000))
        with suppress(TimeoutError):
            for call in calls:
                wire.sendall(lines.seal(call) + b"\n")
            raise AssertionError("all calls were taken")
        with closing(member(address)) as store:
            assert store.get("large") == own.get("large")


def test_a_store_of_a_run_without_key_is_told_from_one_with() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        found = join_keyed(silent.getsockname(), Trust(KEY), CALLER, Deadline(0.2))
        assert isinstance(found, Missing)
        assert found.missing == "unsupported"


def test_a_node_0_without_the_key_is_not_believed() -> None:
    other = new_key("another")
    held = socket.socket()
    held.bind(("127.0.0.1", 0))
    with closing(serve_keyed(held, Served(MemoryBackend(), other, Trust(other), "job/"))):
        found = joined(held.getsockname())
    assert isinstance(found, Missing)
    assert found.missing == "denied"


def test_who_writes_into_the_store_of_the_ranks_is_noticed() -> None:
    held = socket.socket()
    held.bind(("127.0.0.1", 0))
    ranks = DeadlineStore(MemoryBackend(), 29)
    served_here = Served(MemoryBackend(), KEY, Trust(KEY), "job/")
    store = KeyedStore(served_here.memory, 29, KeyedServer(held, served_here), ranks)
    try:
        assert store_changes(RecordingStore(store), "node01") == ()
        ranks.set("ranks-mark", b"garbage")
        assert store_changes(RecordingStore(store), "node01") == (
            StoreChanged("node01", "ranks-mark", "holds something else"),
        )
    finally:
        store.close()
    assert store_changes(RecordingStore(store), "node01") == (), "a store that is closed tells nothing"
