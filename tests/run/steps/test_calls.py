"""A node calls only whom a member of the run announced: no third address, no service of its own, no cloud's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from msgspec.structs import replace

from ncclcheck.exchange.announcements import Announcements, announce_self
from ncclcheck.exchange.probe.reachability import Peer, Target
from ncclcheck.exchange.probe.ring import RepeatedRounds, Ring
from ncclcheck.exchange.probe.ring_plan import ring_of_each
from ncclcheck.exchange.store.base import Store
from ncclcheck.exchange.store.memory import MemoryBackend
from ncclcheck.exchange.store.opening import within_process
from ncclcheck.measure.links.repeats import RetryRound
from ncclcheck.measure.links.rounds import plan_rounds
from ncclcheck.run.steps.base import Bounds
from ncclcheck.run.steps.measure import MeasureOrder
from ncclcheck.run.steps.reach import ReachOrder
from ncclcheck.run.steps.resolve import ResolveOrder
from ncclcheck.run.steps.sequence import step_of
from tests.fact_builders import node_facts

OWN = frozenset({"127.0.0.1", "10.0.0.1", "172.17.0.1", "fd00::1"})
ME = Bounds(ticket=1, most_ranks=8, addresses=OWN)
TARGETS = {
    1: (Target("eth0", "10.0.0.1", 40001),),
    2: (Target("eth0", "10.0.0.2", 40002), Target("eth0", "10.0.0.2", 41002, "nccl", 8)),
    3: (Target("eth0", "10.0.0.3", 40003),),
}
PEERS = tuple(Peer(ticket, f"node{ticket}", targets) for ticket, targets in TARGETS.items())
REACH = ReachOrder(PEERS, {"1": (2, 3), "2": (1, 3), "3": (1, 2)}, 12.0)
RING = Ring(tuple(replace(peer, targets=peer.targets[:1]) for peer in PEERS), plan_rounds(3, 1))
THIRD = Target("eth0", "10.0.0.99", 40099)


@pytest.fixture
def announcements(store: Store) -> Announcements:
    for ticket, targets in TARGETS.items():
        announce_self(store, ticket, node_facts(ticket - 1, 3), targets)
    return Announcements(store)


def reasons(order: object, announcements: Announcements) -> list[str]:
    assert isinstance(order, (ReachOrder, ResolveOrder, MeasureOrder))
    bounds = replace(ME, announced=announcements.of, look_up=announcements.look_up)
    return list(step_of(order).faults(order, bounds))


def with_target(target: Target) -> tuple[ReachOrder, MeasureOrder]:
    """Orders that send this node to the target in the name of ticket 2."""
    peers = tuple(replace(peer, targets=(target,)) if peer.ticket == 2 else peer for peer in RING.peers)
    return replace(REACH, peers=peers), MeasureOrder("bandwidth", replace(RING, peers=peers))


def test_the_orders_of_node_0_are_followed(announcements: Announcements) -> None:
    again = RepeatedRounds(3, (RetryRound(0, ((0, 1), (1, 2))),))
    part, again_part = ring_of_each(RING, again)[ME.ticket]
    for own in (MeasureOrder("latency", part), MeasureOrder("bandwidth", part, again_part)):
        assert reasons(own, announcements) == []
    for order in (REACH, MeasureOrder("latency", RING), MeasureOrder("bandwidth", RING, again)):
        assert reasons(order, announcements) == []
    (name, *_) = announcements.of(2).names  # type: ignore[union-attr]
    assert reasons(ResolveOrder(name, 2, 5.0), announcements) == []


@pytest.mark.parametrize(
    "target",
    [
        THIRD,
        replace(TARGETS[2][0], port=22),
        replace(TARGETS[2][0], address="10.0.0.99"),
        replace(TARGETS[2][0], interface="eth1"),
        TARGETS[3][0],
    ],
)
def test_nobody_calls_what_the_member_did_not_announce(target: Target, announcements: Announcements) -> None:
    for order in with_target(target):
        assert any("did not announce" in reason for reason in reasons(order, announcements))


@pytest.mark.parametrize(
    ("address", "port"),
    [
        ("127.0.0.2", 40000),
        ("169.254.169.254", 8080),
        ("fd00:ec2:0::254", 8080),  # other spellings of the same addresses
        ("fd00:ec2::254%eth0", 8080),
        ("::ffff:169.254.169.254", 8080),
        ("::ffff:127.0.0.1", 40000),
        ("::ffff:0.0.0.0", 40000),
        ("::ffff:10.0.0.1", 40000),  # this node's own
        ("fd00:0::1", 40000),
        ("FD00::1", 40000),
        ("224.0.0.1", 40000),
        ("0.0.0.0", 40000),  # noqa: S104 (to be refused)
        ("ff02::1", 40000),
        ("::", 40000),
        ("10.0.0.2", 22),
        ("10.0.0.2", 1023),
        ("10.0.0.2", 0),
        ("10.0.0.2", 70000),
        ("victim.example", 40000),
        ("", 40000),
    ],
)
def test_nobody_calls_a_service_though_a_member_announced_it(store: Store, address: str, port: int) -> None:
    target = Target("eth0", address, port)
    for ticket, targets in ((1, TARGETS[1]), (2, (target,)), (3, TARGETS[3])):
        announce_self(store, ticket, node_facts(ticket - 1, 3), targets)
    for order in with_target(target):
        assert any(
            "no address and port of a listener" in reason for reason in reasons(order, Announcements(store))
        )


def test_nobody_calls_a_ticket_that_announced_nothing(announcements: Announcements) -> None:
    stranger = Peer(9, "node9", (THIRD,))
    order = replace(REACH, peers=(*PEERS, stranger), targets_of={"1": (9,)})
    assert reasons(order, announcements) == ["ticket 9 announced nothing"]


class Counted(MemoryBackend):
    """Counts what is asked for in one request."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[int] = []

    def set_all(self, values: Mapping[str, bytes]) -> None:
        """Store them."""
        for key, value in values.items():
            self.set(key, value)

    def read_all(self, value_keys: Sequence[str]) -> list[bytes] | None:
        """Return all values, or None."""
        self.asked.append(len(value_keys))
        found = [super(Counted, self).read(key) for key in value_keys]
        return None if None in found else [value for value in found if value is not None]

    def read(self, key: str) -> bytes | None:
        """Return one value."""
        self.asked.append(1)
        return super().read(key)


def test_what_many_peers_announced_is_read_in_one_request() -> None:
    backend = Counted()
    store = within_process(backend, 0)
    for ticket, targets in TARGETS.items():
        announce_self(store, ticket, node_facts(ticket - 1, 3), targets)
    announcements = Announcements(store)
    assert reasons(REACH, announcements) == []
    assert reasons(MeasureOrder("latency", RING), announcements) == []
    assert backend.asked == [2]


def test_what_was_announced_once_does_not_change(store: Store, announcements: Announcements) -> None:
    assert reasons(REACH, announcements) == []
    announce_self(store, 2, node_facts(1, 3), (THIRD,))
    for order in with_target(THIRD):
        assert reasons(order, announcements) != []


@pytest.mark.parametrize(
    "order",
    [
        replace(REACH, deadline_s=1e6),
        replace(REACH, targets_of={"1": (1, 2)}),
        replace(REACH, targets_of={"01": (2,), "1": (2,)}),
        replace(REACH, targets_of={"x": (2,)}),
        replace(REACH, targets_of={"9" * 5000: (2,)}),
        replace(REACH, peers=(*PEERS, PEERS[1])),
        ResolveOrder("victim.example", 2, 5.0),
        ResolveOrder("node2", 9, 5.0),
        MeasureOrder("latency", replace(RING, peers=())),
        MeasureOrder("latency", replace(RING, peers=PEERS)),
        MeasureOrder("latency", replace(RING, places=(0, 1), size=3)),
        MeasureOrder("latency", replace(RING, places=(0, 1, 1), size=3)),
        MeasureOrder("latency", replace(RING, places=(0, 1, 3), size=3)),
        MeasureOrder("latency", replace(RING, places=(0, 2, 4), size=5)),
        MeasureOrder("latency", replace(RING, places=(0, 1, 2), size=-3)),
        MeasureOrder("latency", replace(RING, plan=replace(RING.plan, networks=2))),
        MeasureOrder("latency", replace(RING, plan=replace(RING.plan, networks=-1))),
        MeasureOrder("latency", replace(RING, plan=replace(RING.plan, shifts=(3,)))),
        MeasureOrder("latency", replace(RING, plan=replace(RING.plan, shifts=(1,) * 1000))),
        MeasureOrder("latency", replace(RING, plan=replace(RING.plan, window_s=1e6))),
        MeasureOrder("latency", replace(RING, plan=replace(RING.plan, warm_up_s=-1.0))),
        MeasureOrder("latency", replace(RING, plan=replace(RING.plan, pings_s=60.0))),
        MeasureOrder("bandwidth", RING, RepeatedRounds(3, (RetryRound(1, ((0, 1),)),))),
        MeasureOrder("bandwidth", RING, RepeatedRounds(3, (RetryRound(0, ((0, 3),)),))),
        MeasureOrder("bandwidth", RING, RepeatedRounds(3, (RetryRound(0, ((-1, 0),)),))),
        MeasureOrder("bandwidth", RING, RepeatedRounds(-3, ())),
    ],
)
def test_what_node_0_never_asks_for_is_refused(order: object, announcements: Announcements) -> None:
    assert reasons(order, announcements) != []


def test_further_ports_are_called_only_where_they_were_announced(store: Store) -> None:
    spread = Target("eth0", "10.0.0.2", 40000, further=(41000, 50000))
    for ticket in (1, 2):
        announce_self(store, ticket, node_facts(ticket - 1, 3), (spread,))
    known = Announcements(store)

    def faults_of(*further: int) -> list[str]:
        peer = Peer(2, "node02", (replace(spread, further=further),))
        return reasons(ReachOrder((peer,), {"1": (2,)}, 5.0), known)

    assert faults_of(41000, 50000) == faults_of() == []
    assert any("did not announce" in reason for reason in faults_of(41000, 22000))
