"""A node that has joined passes on what it hears, and node 0 reads it: over real sockets and a real store."""

from __future__ import annotations

import time

import pytest
from msgspec.structs import replace

from ncclcheck import timeouts
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.join.knock import PROTOCOL, Knocked, KnockMessage, send_knock
from ncclcheck.exchange.join.master import MasterSearch
from ncclcheck.exchange.join.relay import RelayedKnock, RelayedKnocks, listen_for_others
from ncclcheck.exchange.messages import SCHEMA, TOOL_VERSION
from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.base import Store
from ncclcheck.exchange.store.memory import MemoryBackend
from ncclcheck.exchange.store.opening import within_process
from ncclcheck.exchange.trust.run_key import RunKey, new_key
from ncclcheck.exchange.trust.trust import Trust
from ncclcheck.model.codec import encode
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import MasterPath
from ncclcheck.model.launch import Launch
from ncclcheck.model.snapshot import Knock
from tests.fact_builders import launch
from tests.ports import free_port

NOWHERE = Missing("absent")


def way(port: int) -> MasterPath:
    return MasterPath("node1", port, ("10.0.0.1",), False, NOWHERE, NOWHERE, "filtered")


def search(place: Launch, trust: Trust) -> MasterSearch:
    return MasterSearch(place, "node2", frozenset(), "job", trust=trust)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeouts, "RELAYED_AFTER_S", 0.0)
    monkeypatch.setattr(timeouts, "RELAYED_POLL_S", 0.0)


@pytest.fixture
def place() -> Launch:
    return replace(launch(0, 4), master_port=free_port(), job_id="job")


@pytest.fixture
def memory() -> MemoryBackend:
    return MemoryBackend()


def heard(knocks: RelayedKnocks, store: Store, count: int) -> dict[int, Knock]:
    """What node 0 knows as soon as it is so much."""
    deadline = Deadline(20)
    while len(found := knocks.final(store)) < count and not deadline.passed:
        time.sleep(0.01)
    return found


@pytest.mark.parametrize("key", [None, new_key("a test")], ids=["without-a-key", "with-a-key"])
def test_a_node_that_only_reaches_another_node_is_known_to_node_0_with_the_path_of_its_word(
    place: Launch, memory: MemoryBackend, key: RunKey | None
) -> None:
    trust, port = Trust(key), place.master_port
    relay = listen_for_others(search(place, trust), way(port), lambda: within_process(memory, 0))
    store = within_process(memory, 0)
    knocks = RelayedKnocks(dict, place, trust)
    message = KnockMessage(PROTOCOL, "job", False, Knock("node4", 3, way(port)))
    reply = send_knock(Knocked(["127.0.0.1"], port, trust), message, 5.0)
    assert reply is not None
    assert (reply.relay, reply.serving, reply.serves_at) == (True, True, "10.0.0.1")
    assert knocks.final(store) == {}  # it has not given up
    for _ in range(3):
        assert send_knock(Knocked(["127.0.0.1"], port, trust), replace(message, final=True), 5.0)
    (knock,) = heard(knocks, store, 1).values()
    assert (knock.host, knock.node_rank, knock.relay) == ("node4", 3, "node2")
    assert knock.origin == ("" if key else "127.0.0.1")
    assert store.add(keys.RELAYED, 0) == 1
    relay.close()


def test_what_a_stranger_writes_there_is_a_claim_of_unknown_origin_and_accuses_no_node_0(
    place: Launch, memory: MemoryBackend
) -> None:
    store = within_process(memory, 0)
    knocks = RelayedKnocks(dict, place, Trust())
    forged = Knock("node1\x1b[2J", 0, way(1)), Knock("node9", 9, way(1)), Knock("node3", 2, way(1))
    prefix = b'{"schema_version":"1","tool_version":"0","knock":'
    for knock in forged:
        number = store.add(keys.RELAYED, 1)
        assert isinstance(number, int)
        store.set_document(keys.relayed(number), prefix + encode(knock) + b"}")
    garbage = store.add(keys.RELAYED, 1)
    assert isinstance(garbage, int)
    store.set_document(keys.relayed(garbage), b"garbage")
    (knock,) = heard(knocks, store, 1).values()
    assert (knock.node_rank, knock.origin, knock.relay) == (2, "an unknown address", "another node")


def test_what_node_0_heard_itself_comes_first(place: Launch, memory: MemoryBackend) -> None:
    own = Knock("node3", 2, replace(way(1), outcome="refused"))
    assert RelayedKnocks(lambda: {2: own}, place, Trust()).final(within_process(memory, 0)) == {2: own}


def test_one_relay_passes_on_eight_claims_at_most(place: Launch, memory: MemoryBackend) -> None:
    place = replace(launch(0, 64), master_port=place.master_port, job_id="job")
    relay = listen_for_others(
        search(place, Trust()), way(place.master_port), lambda: within_process(memory, 0)
    )
    for rank in range(30):
        message = KnockMessage(PROTOCOL, "job", True, Knock("node4", rank, way(1)))
        assert send_knock(Knocked(["127.0.0.1"], place.master_port, Trust()), message, 5.0)
    relay.close()
    assert within_process(memory, 0).add(keys.RELAYED, 0) == 8


def claim(number: int) -> tuple[str, bytes]:
    """What a relay writes under its number, of the node with that rank."""
    message = RelayedKnock(
        SCHEMA, TOOL_VERSION, Knock(f"node{number + 1}", number, way(1), "10.0.0.9", "node2")
    )
    return keys.relayed(number), encode(message)


def test_a_number_that_was_drawn_and_never_written_stops_nothing_and_one_written_late_is_read(
    place: Launch, memory: MemoryBackend
) -> None:
    store, place = within_process(memory, 0), replace(place, nnodes=4)
    knocks = RelayedKnocks(dict, place, Trust())
    assert store.add(keys.RELAYED, 2) == 2  # whoever drew 1 was killed before it wrote
    store.set_document(*claim(2))
    assert set(heard(knocks, store, 1)) == {2}
    assert store.add(keys.RELAYED, 1) == 3
    store.set_document(*claim(3))
    assert set(heard(knocks, store, 2)) == {2, 3}
    store.set_document(*claim(1))  # it was only slow
    assert set(heard(knocks, store, 3)) == {1, 2, 3}


@pytest.mark.parametrize("drawn", [10**9, -(10**9)])
def test_a_stranger_who_draws_numbers_without_end_costs_nothing(
    place: Launch, memory: MemoryBackend, drawn: int
) -> None:
    store = within_process(memory, 0)
    store.add(keys.RELAYED, drawn)
    assert RelayedKnocks(dict, place, Trust()).final(store) == {}
