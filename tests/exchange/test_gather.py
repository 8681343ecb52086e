"""Node 0 waits for those who may still come, and for nobody else. Real stores; no sleeps, no threads."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import count

import pytest
from msgspec.structs import replace

from ncclcheck import timeouts
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.gather import Arrivals, gather_answers, gather_hellos, gather_read, late_hellos
from ncclcheck.exchange.messages import SCHEMA, Hello
from ncclcheck.exchange.store.base import Store
from ncclcheck.exchange.store.deadline_store import DeadlineStore
from ncclcheck.exchange.store.memory import MemoryBackend
from ncclcheck.exchange.store.opening import join, serve
from ncclcheck.model.codec import encode
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.fact import Missing
from ncclcheck.model.launch import Launch
from ncclcheck.model.snapshot import Knock
from tests.exchange.store.gone_backend import GoneBackend
from tests.fact_builders import launch, master_path

pytestmark = pytest.mark.slow  # imports torch
RUNS = count()
TIME_LEFT = re.compile(r" \([01] s left\)$")


@pytest.fixture(scope="module")
def server() -> Store:
    found = serve(0, "server/", Deadline(60))
    assert not isinstance(found, Missing)
    return found


@pytest.fixture
def store(server: Store) -> Store:
    """The store of one run, in which nobody has come yet."""
    found = join("127.0.0.1", server.port, f"{next(RUNS)}/", Deadline(10))
    assert not isinstance(found, Missing)
    return found


def come(store: Store, node_rank: int, nnodes: int = 3, *, local_rank: int = 0, of: int = 1) -> int:
    """A process has come: its ticket."""
    place = launch(node_rank, nnodes, local_rank=local_rank, local_world_size=of)
    ticket = store.add("tickets", 1)
    assert isinstance(ticket, int)
    store.set_document(f"hello/{ticket}", encode(Hello(SCHEMA, "0.1.0", f"node{node_rank}", place)))
    return ticket


def meanwhile(*steps: Callable[[], object]) -> Callable[[], Mapping[int, Knock]]:
    """No knocks; but each time node 0 looks for some, the next step has happened."""
    waiting: Iterator[Callable[[], object]] = iter(steps)

    def knocks() -> Mapping[int, Knock]:
        next(waiting, lambda: None)()
        return {}

    return knocks


def gathered(
    store: Store,
    knocks: Callable[[], Mapping[int, Knock]] = dict,
    *,
    place: Launch | None = None,
    seconds: float = 30,
    say: Callable[[str], None] = lambda _: None,
) -> Arrivals:
    return gather_hellos(store, place or launch(0, 3), knocks, Deadline(seconds), say)


def nodes(arrivals: Arrivals) -> list[int]:
    return sorted(hello.launch.node_rank for hello in arrivals.hellos.values())


def test_once_everybody_is_there_nobody_is_waited_for(store: Store) -> None:
    for rank in (2, 0, 1):
        come(store, rank)
    arrivals = gathered(store)
    assert nodes(arrivals) == [0, 1, 2]
    assert arrivals.waited_s < 1


def test_those_who_come_later_are_waited_for(store: Store) -> None:
    come(store, 0)
    arrivals = gathered(store, meanwhile(lambda: come(store, 1), lambda: come(store, 2)))
    assert nodes(arrivals) == [0, 1, 2]


def test_who_comes_when_the_others_are_complete_is_late(store: Store) -> None:
    for rank in range(3):
        come(store, rank)
    arrivals = gathered(store)
    assert late_hellos(store, launch(0, 3), arrivals) == ()
    come(store, 1)
    assert [hello.host for hello in late_hellos(store, launch(0, 3), arrivals)] == ["node1"]


def test_a_ticket_that_is_drawn_is_not_yet_a_hello(store: Store) -> None:
    come(store, 0)
    store.add("tickets", 1)
    come(store, 2)
    hello = encode(Hello(SCHEMA, "0.1.0", "node1", launch(1, 3)))
    arrivals = gathered(store, meanwhile(lambda: None, lambda: store.set_document("hello/2", hello)))
    assert arrivals.hellos[2].host == "node1"
    assert not arrivals.refused


def test_the_wait_ends_when_everyone_missing_has_said_that_it_cannot_join(store: Store) -> None:
    come(store, 0)
    gone = {rank: Knock(f"node{rank}", rank, master_path(rank, 3, "filtered")) for rank in (1, 2)}
    arrivals = gathered(store, lambda: gone)
    assert nodes(arrivals) == [0]
    assert arrivals.waited_s < 1


def test_a_knock_of_one_does_not_end_the_wait_for_another(store: Store) -> None:
    come(store, 0)
    one = {1: Knock("node1", 1, master_path(1, 3, "filtered"))}
    assert gathered(store, lambda: one, seconds=0.5).waited_s >= 0.5


def test_at_the_deadline_those_who_came_are_there_and_the_others_were_named(store: Store) -> None:
    come(store, 0)
    said: list[str] = []
    arrivals = gathered(store, seconds=4.5, say=said.append)
    assert nodes(arrivals) == [0]
    assert 4.4 < arrivals.waited_s < 8
    assert [TIME_LEFT.sub("", text) for text in said] == ["waiting for node rank 1, 2 of 3"]
    assert all(TIME_LEFT.search(text) for text in said)


def test_of_many_missing_nodes_the_first_are_named(store: Store) -> None:
    come(store, 0, 500)
    said: list[str] = []
    gathered(store, place=launch(0, 500), seconds=4.5, say=said.append)
    told = TIME_LEFT.sub("", said[0])
    assert told == "waiting for node rank 1, 2, 3, 4, 5, 6, 7, 8 and 491 more of 500"


def test_where_as_many_came_as_were_expected_under_clashing_ranks_no_other_is_waited_for(
    store: Store,
) -> None:
    for rank in (0, 1, 1):
        come(store, rank)
    arrivals = gathered(store)
    assert nodes(arrivals) == [0, 1, 1]
    assert timeouts.WRONG_NODES_QUIET_S <= arrivals.waited_s < timeouts.WRONG_NODES_QUIET_S + 2


def test_a_refused_hello_counts_as_somebody_who_came(store: Store) -> None:
    come(store, 0)
    come(store, 1)
    store.set_document(f"hello/{store.add('tickets', 1)}", b"not even JSON")
    arrivals = gathered(store)
    assert nodes(arrivals) == [0, 1]
    assert list(arrivals.refused) == [3]
    assert arrivals.waited_s < timeouts.WRONG_NODES_QUIET_S + 2


def test_further_ranks_of_a_node_that_came_are_waited_for_and_that_is_said(store: Store) -> None:
    said: list[str] = []
    come(store, 0, 1, of=2)

    def say(text: str) -> None:
        said.append(text)
        come(store, 0, 1, local_rank=1, of=2)

    arrivals = gathered(store, place=launch(0, 1, local_world_size=2), say=say)
    assert len(arrivals.hellos) == 2
    assert [text.partition(" (")[0] for text in said] == [
        "waiting for 1 further processes of the nodes that came"
    ]


def test_a_lost_store_ends_every_wait() -> None:
    store = DeadlineStore(GoneBackend(), 29500)
    assert gathered(store) == Arrivals({}, {}, 0.0)
    assert gather_answers(store, [1, 2], lambda ticket: f"facts/{ticket}", Deadline(30)) == {}
    assert store.lost is not None


def test_a_counter_that_was_tampered_with_costs_no_more_time_than_there_is(store: Store) -> None:
    store.set("tickets", b"1000000000000")
    arrivals = gathered(store, seconds=0.5)
    assert arrivals.hellos == {}
    assert arrivals.waited_s < 3


def test_answers_are_taken_as_soon_as_all_are_there(store: Store) -> None:
    for ticket in (3, 5):
        store.set_document(f"facts/{ticket}", b"%d" % ticket)
    deadline = Deadline(30)
    assert gather_answers(store, [5, 3], lambda ticket: f"facts/{ticket}", deadline) == {3: b"3", 5: b"5"}
    assert deadline.left() > 29


def test_answers_are_read_as_they_arrive_and_refused_ones_are_told(store: Store) -> None:
    store.set_document("facts/0", b"0")

    def read(data: bytes) -> bytes:
        store.set_document(
            f"facts/{int(data) + 1}", b"%d" % (int(data) + 1)
        )  # the next comes once this one is read
        if data == b"1":
            raise DecodeError("it is no answer")
        return data

    accepted, refused = gather_read(
        store, range(4), lambda ticket: f"facts/{ticket}", Deadline(60), read=read
    )
    assert accepted == {0: b"0", 2: b"2", 3: b"3"}
    assert refused == {1: "it is no answer"}


def test_answers_that_did_not_come_by_the_deadline_are_left_out(store: Store) -> None:
    store.set_document("facts/3", b"")
    assert gather_answers(store, [3, 4], lambda ticket: f"facts/{ticket}", Deadline(0.3)) == {3: b""}


class SlowBackend(MemoryBackend):
    """Documents come one after the other, 0.05 s apart."""

    def __init__(self) -> None:
        super().__init__()
        self._started = time.monotonic()

    def read(self, key: str) -> bytes | None:
        """Return the document once its time has come."""
        comes_after_s = 0.05 * int(key.removeprefix("facts/"))
        return b"=" if time.monotonic() - self._started > comes_after_s else None


def test_answers_that_still_arrive_at_the_deadline_are_waited_for() -> None:
    slow = DeadlineStore(SlowBackend(), 0)
    found = gather_answers(slow, range(20), lambda ticket: f"facts/{ticket}", Deadline(60).within(0.1))
    assert len(found) == 20


def test_to_read_what_came_for_long_is_no_silence(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeouts, "STILL_ARRIVING_S", 1.0)
    store.set_document("facts/0", b"0")
    later = threading.Timer(1.8, store.set_document, ("facts/1", b"1"))

    def read(ticket: int, _data: bytes) -> None:
        if ticket == 0:
            later.start()
            time.sleep(1.3)

    found = gather_answers(
        store, [0, 1], lambda ticket: f"facts/{ticket}", Deadline(60).within(0.1), read=read
    )
    assert set(found) == {0, 1}


def test_they_are_not_waited_for_beyond_the_whole() -> None:
    slow = DeadlineStore(SlowBackend(), 0)
    found = gather_answers(slow, range(200), lambda ticket: f"facts/{ticket}", Deadline(0.3))
    assert 0 < len(found) < 200


def test_nobody_is_waited_for_beyond_the_deadline_where_nothing_arrives(store: Store) -> None:
    store.set_document("facts/3", b"")
    whole = Deadline(60)
    deadline = whole.within(timeouts.STILL_ARRIVING_S + 0.5)
    assert gather_answers(store, [3, 4], lambda ticket: f"facts/{ticket}", deadline) == {3: b""}
    assert whole.left() > 30


def test_nobody_asked_is_nobody_waited_for(store: Store) -> None:
    deadline = Deadline(30)
    assert gather_answers(store, [], lambda ticket: f"facts/{ticket}", deadline) == {}
    assert deadline.left() > 29


def test_whom_nothing_is_heard_of_is_said_once_with_the_reasons_and_not_of_those_who_gave_up(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timeouts, "SILENCE_TOLD_S", 0.2)
    said: list[str] = []
    knocks = {1: Knock("node1", 1, master_path(1, outcome="refused"))}
    come(store, 0)
    gathered(store, lambda: knocks, seconds=0.6, say=said.append)
    (line,) = said
    assert line.startswith("nothing is heard of node rank 2 by TCP, by datagram, or through another node")
    assert "told another master address" in line


@pytest.mark.parametrize("field", ["world_size", "nnodes", "local_world_size"])
def test_a_hello_that_claims_an_endless_job_is_refused(store: Store, field: str) -> None:
    store.add("tickets", 1)
    wild = replace(launch(1, 2), **{field: 10**12})
    store.set_document("hello/1", encode(Hello(SCHEMA, "0.1.0", "node2", wild)))
    arrivals = gather_hellos(store, launch(0, 2), tuple, Deadline(0.3), lambda _: None)
    assert arrivals.hellos == {}
    assert "it claims" in arrivals.refused[1]
