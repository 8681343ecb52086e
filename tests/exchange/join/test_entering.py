"""Joining what answers at the master address, and what node 0 says of it by datagram. Real datagrams."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from ncclcheck import timeouts
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.join.entering import join_at
from ncclcheck.exchange.join.knock import KnockListener
from ncclcheck.exchange.join.master import MasterSearch
from ncclcheck.exchange.store.base import Store
from ncclcheck.exchange.store.memory import MemoryBackend
from ncclcheck.exchange.store.opening import within_process
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import MasterPath
from tests.fact_builders import launch
from tests.ports import free_port

SILENT = Missing("timeout", "no TCPStore answer")


class Joins:
    """Finds these stores in turn; remembers how long it was given."""

    def __init__(self, *found: Store | Missing) -> None:
        self.found = list(found)
        self.given: list[float] = []

    def __call__(self, _name: str, _port: int, deadline: Deadline) -> Store | Missing:
        self.given.append(round(deadline.left(), 1))
        return self.found.pop(0)


@pytest.fixture
def listener() -> Iterator[KnockListener]:
    listener = KnockListener(free_port(), "job")
    yield listener
    listener.close()


def entered(listener: KnockListener, joins: Joins) -> tuple[Store | Missing, MasterPath]:
    port = listener._port
    place = replace(launch(1, 2), master_addr="127.0.0.1", master_port=port)
    way = MasterPath("127.0.0.1", port, ("127.0.0.1",), False, SILENT, SILENT, "answered")
    return join_at(way, MasterSearch(place, "node02", frozenset(), "job"), joins, Deadline(60.0).within(12.0))


def test_a_store_that_answers_is_joined_at_once(listener: KnockListener) -> None:
    store = within_process(MemoryBackend(), 0)
    joins = Joins(store)
    assert entered(listener, joins)[0] is store
    assert joins.given == [timeouts.STORE_SILENT_S]


def test_one_that_is_slow_gets_the_rest_of_the_time(listener: KnockListener) -> None:
    listener.serving = True
    store = within_process(MemoryBackend(), 0)
    joins = Joins(SILENT, store)
    found, way = entered(listener, joins)
    assert (found, way.outcome) == (store, "answered")
    assert joins.given[0] == timeouts.STORE_SILENT_S < joins.given[1]


def test_where_node_0_says_that_it_cannot_serve_nobody_waits_for_what_answers(
    listener: KnockListener,
) -> None:
    listener.given_up = "its store cannot be served: sshd holds the port"
    joins = Joins(SILENT)
    found, way = entered(listener, joins)
    assert isinstance(found, Missing)
    assert "sshd holds the port" in way.not_served
    assert way.outcome in ("foreign", "lost")
    assert joins.given == [timeouts.STORE_SILENT_S]


def test_another_key_is_told_at_once(listener: KnockListener) -> None:
    joins = Joins(Missing("denied", "another key"))
    assert entered(listener, joins)[1].outcome == "other-key"
    assert len(joins.given) == 1


def test_a_resolver_that_hangs_is_told_before_anything_is_tried(
    listener: KnockListener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ncclcheck.exchange.join.entering.hanging_files", lambda: ("/etc/hosts",))
    joins = Joins()
    found, way = entered(listener, joins)
    assert isinstance(found, Missing)
    assert way.outcome == "resolver-hangs"
    assert "/etc/hosts" in way.detail


def test_a_silent_name_server_gives_it_more_time_and_is_the_cause_where_that_is_not_enough(
    listener: KnockListener,
) -> None:
    listener.serving, listener.silent_servers = True, ("10.0.0.77", "no\x1baddress")
    joins = Joins(SILENT, SILENT)
    found, way = entered(listener, joins)
    assert isinstance(found, Missing)
    assert way.outcome == "resolver-slow"
    assert way.detail.startswith("the name server 10.0.0.77 of node 0 gave no answer")
    assert joins.given[1] > timeouts.STORE_ANSWERS_S
