"""The way to the master, found with real listeners, closed ports, queues that drop, and node 0's own datagrams."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from msgspec.structs import replace

from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.join.knock import FAILED, KnockListener
from ncclcheck.exchange.join.master import (
    MasterSearch,
    describe,
    find_master,
    give_up,
    resolve_master,
    unmarked,
)
from ncclcheck.facts.network.interfaces import read_interfaces
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import MasterPath
from ncclcheck.model.formats.addresses import is_loopback
from tests.fact_builders import launch
from tests.facts.namespace import Namespace

JOB = "job"


@pytest.fixture
def held() -> Iterator[socket.socket]:
    """A TCP port of 127.0.0.1 that is ours and closed: connects are refused until somebody lets it listen."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        yield one


@pytest.fixture
def node_0(held: socket.socket) -> Iterator[KnockListener]:
    listener = KnockListener(held.getsockname()[1], JOB)
    yield listener
    listener.close()


@pytest.fixture
def own_address() -> str:
    """An address of this machine that is no loopback."""
    for interface in read_interfaces():
        for address in interface.addresses:
            if address.family == "inet" and not is_loopback(address.address):
                return address.address
    pytest.skip("this machine has nothing but a loopback")


def rank_on_node_0(held: socket.socket, name: str = "127.0.0.1") -> MasterSearch:
    """A further process of node 0: for it, unlike for another node, 127.0.0.1 is the right place."""
    place = launch(0, 2, local_rank=1, local_world_size=2)
    place = replace(place, master_addr=name, master_port=held.getsockname()[1])
    return MasterSearch(place, "node01", frozenset(), JOB)


def node_1(held: socket.socket, name: str = "127.0.0.1", *own: str) -> MasterSearch:
    place = replace(launch(1, 2), master_addr=name, master_port=held.getsockname()[1])
    return MasterSearch(place, "node02", frozenset(own), JOB)


def find(search: MasterSearch, seconds: float, say: Callable[[str], None] = lambda _: None) -> MasterPath:
    """The way; it took no longer than it was allowed, and says no more than it took."""
    began = time.monotonic()
    way = find_master(search, Deadline(seconds), say)
    took = time.monotonic() - began
    assert took < seconds + 1.0
    assert way.seconds <= took + 0.001  # it is rounded
    return way


def test_a_master_that_listens_has_answered_at_once(held: socket.socket) -> None:
    held.listen()
    way = find(rank_on_node_0(held), 20)
    assert (way.outcome, way.attempts, way.addresses) == ("answered", 1, ("127.0.0.1",))
    assert (way.source_address, way.interface, way.is_local) == ("127.0.0.1", "lo", True)
    assert way.seconds < 1


def test_a_master_that_starts_later_is_waited_for_and_that_is_said(held: socket.socket) -> None:
    said: list[str] = []

    def start(text: str) -> None:
        said.append(text)
        held.listen()

    way = find(rank_on_node_0(held), 20, start)
    assert (way.outcome, way.attempts) == ("answered", 2)
    assert len(said) == 1
    assert "refused" in said[0]
    assert "ECONNREFUSED" in said[0]


def test_a_port_that_stays_closed_is_refused_at_the_deadline(held: socket.socket) -> None:
    way = find(rank_on_node_0(held), 0.7)
    assert way.outcome == "refused"
    assert way.seconds >= 0.7 - 0.001
    assert way.attempts > 1
    assert "ECONNREFUSED" in way.detail
    assert not way.serving_confirmed
    assert way.nobody_there


def test_a_port_that_somebody_holds_over_udp_is_not_called_abandoned(held: socket.socket) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as holder:
        holder.bind(held.getsockname())
        way = find(rank_on_node_0(held), 0.7)
    assert (way.outcome, way.nobody_there) == ("refused", False)


@pytest.mark.slow
def test_a_last_attempt_that_the_deadline_cuts_short_does_not_turn_refused_into_filtered(
    held: socket.socket,
) -> None:
    """Once the first attempt was refused the queue is full, so that the second one is not answered."""
    with ExitStack() as stack:

        def fall_silent(_said: str) -> None:
            held.listen(0)
            for filler in (stack.enter_context(socket.socket()) for _ in range(4)):
                filler.setblocking(False)
                filler.connect_ex(held.getsockname())

        way = find(rank_on_node_0(held), 1.5, fall_silent)
    assert (way.outcome, way.attempts) == ("refused", 1)
    assert "ECONNREFUSED" in way.detail


@pytest.mark.slow
def test_a_port_that_drops_everything_is_filtered_long_before_the_deadline(held: socket.socket) -> None:
    held.listen(0)
    with ExitStack() as stack:
        for _ in range(4):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(held.getsockname())
        began, said = time.monotonic(), list[tuple[float, str]]()
        way = find(rank_on_node_0(held), 60, lambda text: said.append((time.monotonic() - began, text)))
    assert (way.outcome, way.attempts) == ("filtered", 1)
    assert 7 < way.seconds < 10
    ((after_s, text),) = said
    assert "does not answer" in text
    assert after_s < 5


@pytest.mark.lab
@pytest.mark.slow
def test_unused_address_is_no_route_within_10_s_or_the_deadline() -> None:
    setup = (
        "from ncclcheck.exchange.join.master import *\n"
        "from ncclcheck.model.launch import Launch\n"
        "place = Launch('flags', 1, 2, 0, 1, 1, 2, '10.99.0.2', 29500)\n"
        "search = MasterSearch(place, 'node02', frozenset({'10.99.0.1'}), 'job')\n"
    )
    with Namespace() as node:
        node.ip("link add eth0 type veth peer name far0", "addr add 10.99.0.1/24 dev eth0")
        node.ip("link set lo up", "link set eth0 up", "link set far0 up")
        for seconds in (60, 4):
            expression = f"find_master(search, Deadline({seconds}), lambda _: None)"
            way = node.evaluate("network.routes", expression, setup)
            assert way["outcome"] == "no-route"
            assert way["interface"] == "eth0"
            assert way["seconds"] < 10


def test_node_0_that_will_never_serve_ends_the_wait_with_its_reason(
    held: socket.socket, node_0: KnockListener
) -> None:
    node_0.given_up = "port 29500 is held by pid 7"
    way = find(rank_on_node_0(held), 20)
    assert (way.outcome, way.attempts) == ("refused", 1)
    assert "ECONNREFUSED; node 0 answers by datagram: port 29500 is held by pid 7" in way.detail
    assert way.seconds < 2


@pytest.mark.slow
def test_node_0_that_serves_while_tcp_is_refused_ends_the_wait_soon(
    held: socket.socket, node_0: KnockListener
) -> None:
    node_0.serving = True
    way = find(rank_on_node_0(held), 20)
    assert way.outcome == "refused"
    assert way.serving_confirmed
    assert 1.5 < way.seconds < 5


@pytest.mark.slow
def test_node_0_that_is_known_to_serve_while_tcp_is_refused_ends_the_wait_soon(held: socket.socket) -> None:
    began = time.monotonic()
    way = find_master(replace(rank_on_node_0(held), serving=True), Deadline(20), lambda _: None)
    assert (way.outcome, way.serving_confirmed) == ("refused", True)
    assert time.monotonic() - began < 8


def test_node_0_that_does_not_serve_yet_is_waited_for(held: socket.socket, node_0: KnockListener) -> None:
    assert find(rank_on_node_0(held), 0.7).outcome == "refused"
    assert node_0.final() == {}  # a node that only asks has not given up


def test_node_0_of_another_job_ends_no_wait(held: socket.socket, node_0: KnockListener) -> None:
    node_0.given_up = "it is not ours"
    way = find(MasterSearch(rank_on_node_0(held).launch, "node01", frozenset(), "other"), 0.7)
    assert "not ours" not in way.detail


def test_on_another_node_the_loopback_leads_astray_but_is_tried_all_the_same(held: socket.socket) -> None:
    way = find(node_1(held), 0.7)
    assert (way.outcome, way.is_local) == ("loopback", True)
    assert way.attempts > 1
    held.listen()
    assert find(node_1(held), 20).outcome == "answered"


@pytest.mark.slow
def test_an_address_of_this_node_is_not_the_first_nodes(held: socket.socket, own_address: str) -> None:
    assert find(node_1(held, own_address, own_address), 0.7).outcome == "not-first-node"
    assert find(node_1(held, own_address), 0.7).outcome == "refused"


@pytest.mark.parametrize("name", ["", "no-such-host.invalid", "a..b", "x" * 300])
def test_a_name_without_an_address_is_unresolvable_within_the_deadline(
    held: socket.socket, name: str
) -> None:
    way = find(node_1(held, name), 0.5)
    assert (way.outcome, way.attempts, way.is_local) == ("unresolvable", 0, False)
    for fact in (way.addresses, way.source_address, way.interface):
        assert isinstance(fact, Missing)
    assert way.detail


def test_a_name_that_does_not_resolve_is_told_before_it_is_given_up(held: socket.socket) -> None:
    began, said = time.monotonic(), list[tuple[float, str]]()
    find(node_1(held, "no-such-host.invalid"), 20, lambda text: said.append((time.monotonic() - began, text)))
    ((after_s, text),) = said
    assert "does not resolve (no-such-host.invalid" in text
    assert after_s < 3


def test_an_address_is_its_own_name() -> None:
    assert resolve_master("192.0.2.7", Deadline(1), print) == ("192.0.2.7",)


def test_a_name_is_local_only_when_all_its_addresses_are() -> None:
    own = frozenset({"192.0.2.7"})
    assert describe("n", 1, ("192.0.2.7", "127.0.1.1"), own).is_local
    assert not describe("n", 1, ("127.0.1.1", "192.0.2.8"), own).is_local


def test_who_gives_up_tells_node_0_and_hears_whether_it_serves(
    held: socket.socket, node_0: KnockListener
) -> None:
    search = node_1(held)
    way = find(search, 0.3)
    node_0.serving = True
    assert give_up(way, search) == replace(way, serving_confirmed=True)
    assert node_0.final()[1].master == way
    assert node_0.final()[1].host == "node02"


def test_the_network_is_not_blamed_where_node_0_failed_by_itself(
    held: socket.socket, node_0: KnockListener
) -> None:
    node_0.given_up, node_0.has_failed = f"{FAILED}NotImplementedError: x", True
    found = find(node_1(held), 10.0)
    assert found.outcome == "lost"
    assert found.detail == f"node 0 answers by datagram: {FAILED}NotImplementedError: x"
    connected = replace(found, outcome="foreign", detail="it does not answer as a TCPStore")
    assert give_up(connected, node_1(held)) == found


def test_who_gives_up_and_is_not_heard_loses_a_second_at_most(held: socket.socket) -> None:
    search = node_1(held)
    way = describe("127.0.0.1", held.getsockname()[1], ("127.0.0.1",), frozenset())
    began = time.monotonic()
    assert give_up(way, search) == way
    assert time.monotonic() - began < 2
    nowhere = describe("n", 1, Missing("absent", "n: unknown"), frozenset())
    assert give_up(nowhere, search) == nowhere


def test_a_store_whose_mark_was_erased_is_node_0s_own_and_not_foreign(
    held: socket.socket, node_0: KnockListener
) -> None:
    search = rank_on_node_0(held)
    held.listen()
    way = describe("127.0.0.1", held.getsockname()[1], ("127.0.0.1",), frozenset())
    node_0.serving = True
    assert unmarked(search, way, Missing("timeout")).outcome == "lost"
    node_0.serving = False
    assert unmarked(search, way, Missing("timeout")).outcome == "foreign"
