"""Node 0's watcher over the beats of other nodes, which come through a store in memory."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ncclcheck.cli.watching import watch_coordinator as module
from ncclcheck.cli.watching.watch_coordinator import LeadPlan, WatchCoordinator
from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.base import Store
from ncclcheck.exchange.store.memory import MemoryBackend
from ncclcheck.exchange.store.opening import within_process
from ncclcheck.model.codec import decode, encode
from ncclcheck.model.job.together import Beat, NodeStudy, RankEnd, RankStudy, WatchOrder
from ncclcheck.model.job.watched import Frame, Watch, WatchedRank

PLAN = LeadPlan(look_s=1.0, patience_s=10.0, apart_s=1.0)
AT = Frame("/home/me/train.py", 33, "evaluate")


class Clock:
    """The time that the lead sees."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        """As time.monotonic."""
        return self.now

    def time(self) -> float:
        """As time.time."""
        return self.now


class World:
    """Node 0's lead, the store, and two further nodes whose beats a test sends."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.store: Store = within_process(MemoryBackend(), 0)
        self.lead = WatchCoordinator(self.store, PLAN)
        self.numbers = dict.fromkeys(("node1", "node2", "node3"), 0)
        for _ in range(2):
            self.store.add(keys.WATCH_SLOTS, 1)

    def beat(self, host: str, beat: Beat | None = None, late_s: float = 0.0) -> Beat:
        """Send a beat of a node, or make that of node 0. `late_s`: how long ago, by the node's clock."""
        self.numbers[host] += 1
        given = beat or Beat("", "", 0, 0.0, ranks=2, world_size=6, moves_bytes=True)
        made = replace(
            given, host=host, watcher=f"w-{host}", number=self.numbers[host], sent_s=self.clock.now - late_s
        )
        if host != "node1":
            self.store.set(keys.watch_beat(int(host[-1]) - 1), encode(made))
        return made

    def pass_s(self, seconds: float, beat: Beat | None = None, silent: tuple[str, ...] = ()) -> None:
        """Let so many seconds pass, with a beat of each node per second."""
        for _ in range(int(seconds)):
            self.clock.now += 1
            for host in ("node2", "node3"):
                if host not in silent:
                    self.beat(host, beat)
            self.lead.look(self.beat("node1", beat), None)

    @property
    def watch(self) -> Watch | None:
        """The last decision."""
        return self.lead.order.watch


STILL = Beat("", "", 0, 0.0, ranks=2, world_size=6)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """Three nodes whose job has trained for a while."""
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    made = World(clock)
    made.pass_s(20)
    return made


def _study(host: str, first: int, *, sleeps: bool = False) -> NodeStudy:
    waiting = RankStudy(first, 100 + first, "w", inside=True, call="all_reduce", at=AT)
    asleep = RankStudy(first + 1, 101 + first, "s", at=AT)
    return NodeStudy(host, (waiting, asleep if sleeps else replace(waiting, rank=first + 1)), world_size=6)


def test_a_job_that_trains_is_left_alone(world: World) -> None:
    assert world.watch is None
    assert world.lead.order.study == 0
    assert world.lead.hosts == ("node1", "node2", "node3")


def test_a_job_that_stands_still_is_studied_on_all_nodes_and_the_culprit_named(world: World) -> None:
    world.pass_s(12, STILL)
    assert world.lead.order.study == 1
    told = world.store.get(keys.WATCH_ORDER)
    assert isinstance(told, bytes)
    assert decode(told, WatchOrder).study == 1
    for host, slot in (("node2", 1), ("node3", 2)):
        world.store.set(keys.watch_study(slot), encode(_study(host, 2 * slot, sleeps=host == "node3")))
        world.beat(host, replace(STILL, studied=1))
    world.clock.now += 1
    world.lead.look(world.beat("node1", replace(STILL, studied=1)), _study("node1", 0))
    assert world.watch is not None
    assert (world.watch.decision, [rank.host for rank in world.watch.culprits]) == ("hang", ["node3"])
    assert world.watch.victims == (0, 1, 2, 3, 4)
    world.pass_s(3)
    assert world.watch.decision == "ok"


def test_one_node_that_moves_bytes_keeps_the_job_from_counting_as_frozen(world: World) -> None:
    for _ in range(40):
        world.clock.now += 1
        world.beat("node2", STILL)
        world.beat("node3")
        world.lead.look(world.beat("node1", STILL), None)
    assert world.lead.order.study == 0


def test_a_node_that_sends_no_beats_is_silent_and_told_once_and_told_again_when_it_is_back(
    world: World,
) -> None:
    world.pass_s(10, silent=("node2",))
    assert world.watch is None
    world.pass_s(10, silent=("node2",))
    assert world.watch is not None
    assert (world.watch.decision, world.watch.silent) == ("silent", ("node2",))
    number = world.lead.order.decided
    world.pass_s(5, silent=("node2",))
    assert world.lead.order.decided == number
    world.pass_s(2)
    assert world.watch.decision == "ok"


def test_a_node_that_took_leave_is_not_silent(world: World) -> None:
    world.beat("node2", replace(STILL, left=True))
    world.pass_s(40, silent=("node2",))
    assert world.watch is None


def test_the_first_of_several_failures_is_named_though_it_is_heard_of_later(world: World) -> None:
    def died(host: str, rank: int, ago_s: float) -> Beat:
        end = RankEnd(WatchedRank(rank, host, 100 + rank, reason="ended"), world.clock.now - ago_s)
        return replace(STILL, ended=(end,))

    world.clock.now += 1
    world.lead.look(world.beat("node1", died("node1", 0, 0.2)), None)
    assert world.watch is None  # an earlier one may come
    mine = died("node1", 0, 0.2)
    world.clock.now += 1
    world.beat("node3", died("node3", 5, 1.9))
    world.lead.look(world.beat("node1", mine), None)
    world.clock.now += 2
    world.lead.look(world.beat("node1", mine), None)
    assert world.watch is not None
    assert (world.watch.decision, world.watch.culprits[0].rank, world.watch.victims) == ("died", 5, (0,))


def test_a_failure_after_a_signal_to_the_watcher_of_another_node_is_told_with_that_signal(
    world: World,
) -> None:
    end = RankEnd(WatchedRank(0, "node1", 100, reason="ended with exit code 1"), world.clock.now)
    mine = replace(STILL, ended=(end,))
    for _ in range(2):
        world.clock.now += 2
        world.beat("node3", replace(STILL, interrupted=True, left=True))
        world.lead.look(world.beat("node1", mine), None)
    assert world.watch is not None
    assert (world.watch.decision, world.watch.culprits[0].rank) == ("died", 0)
    assert world.watch.remarks == ("a signal told the watcher of node3 to end its job",)


def test_a_stopped_rank_of_any_node_is_told_at_once(world: World) -> None:
    stopped = WatchedRank(2, "node2", 102, reason="is stopped")
    world.clock.now += 1
    world.beat("node2", replace(STILL, standing=(stopped,)))
    world.lead.look(world.beat("node1"), None)
    assert world.watch is not None
    assert (world.watch.decision, world.watch.culprits) == ("stopped", (stopped,))


def test_what_strangers_write_is_passed_by(world: World) -> None:
    world.store.set(keys.watch_beat(1), b"not a beat")
    world.store.set(keys.WATCH_URGENT, b"x" * 100)
    world.pass_s(3, silent=("node2",))
    assert world.lead.is_urgent() is False


def test_a_beat_that_was_long_on_its_way_does_not_hide_that_a_clock_is_ahead(world: World) -> None:
    """By its own clock, 4 s ahead, rank 2 of node2 failed 1 s after rank 0, and so 3 s before it."""
    for late_s in (0.1, -4.0, 0.0):  # 4.1 s, none and 4 s on the way
        world.clock.now += 1
        world.beat("node2", late_s=late_s)
        world.lead.look(world.beat("node1"), None)
    failed_s = world.clock.now
    first = RankEnd(WatchedRank(0, "node1", 100, reason="ended"), failed_s)
    ahead = RankEnd(WatchedRank(2, "node2", 102, reason="ended"), failed_s + 1)
    world.beat("node2", replace(STILL, ended=(ahead,)), late_s=0.0)
    for _ in range(3):
        world.clock.now += 1
        world.lead.look(world.beat("node1", replace(STILL, ended=(first,))), None)
    assert world.watch is not None
    assert (world.watch.culprits[0].rank, world.watch.victims) == (2, (0,))


def _answer(world: World, host: str, study: NodeStudy, number: int = 1) -> None:
    world.store.set(keys.watch_study(int(host[-1]) - 1), encode(study))
    world.beat(host, replace(STILL, studied=number))


def _look(world: World, own: NodeStudy, number: int = 1) -> Watch | None:
    world.clock.now += 1
    world.lead.look(world.beat("node1", replace(STILL, studied=number)), own)
    return world.watch


def test_a_node_that_still_reads_its_ranks_stacks_is_waited_for_and_not_silent(world: World) -> None:
    world.pass_s(12, STILL)
    assert world.lead.order.study == 1
    _answer(world, "node2", _study("node2", 2))
    for _ in range(100):
        world.beat("node2", replace(STILL, studied=1))
        world.beat("node3", replace(STILL, studying=True))
        assert _look(world, _study("node1", 0)) is None
    _answer(world, "node3", _study("node3", 4, sleeps=True))
    watch = _look(world, _study("node1", 0))
    assert watch is not None
    assert (watch.decision, [rank.host for rank in watch.culprits], watch.silent) == ("hang", ["node3"], ())


@pytest.mark.parametrize(("studying", "waited_s"), [(False, 22), (True, 300)])
def test_a_node_that_is_heard_but_does_not_answer_is_a_remark_and_makes_no_hang(
    world: World, studying: bool, waited_s: int
) -> None:
    world.pass_s(12, STILL)
    _answer(world, "node2", _study("node2", 2))
    for _ in range(waited_s + 2):
        world.beat("node2", replace(STILL, studied=1))
        world.beat("node3", replace(STILL, studying=studying))
        _look(world, _study("node1", 0))
    assert world.watch is not None
    assert (world.watch.decision, world.watch.silent) == ("quiet", ())
    assert world.watch.remarks == (f"no stacks came from node3 within {waited_s} s",)


def _hung(world: World) -> None:
    world.pass_s(12, STILL)
    _answer(world, "node2", _study("node2", 2))
    _answer(world, "node3", _study("node3", 4, sleeps=True))
    watch = _look(world, _study("node1", 0))
    assert watch is not None
    assert watch.decision == "hang"


def test_a_hang_holds_while_a_node_is_silent_and_ends_when_the_job_advances(world: World) -> None:
    _hung(world)
    told = []
    for silent, beat, seconds in ((("node2",), STILL, 18), ((), STILL, 3), ((), None, 40)):
        world.pass_s(seconds, beat, silent)
        assert world.watch is not None
        told.append(world.watch.decision)
    assert told == ["silent", "silent", "ok"]  # that it is back is no end of the hang


def test_an_order_over_thousands_of_culprits_can_be_read_by_the_other_nodes(world: World) -> None:
    many = tuple(WatchedRank(rank, "node2", rank, reason="is stopped " * 50) for rank in range(4000))
    world.clock.now += 1
    world.beat("node2", replace(STILL, ranks=8000, standing=many[:1000]))
    world.lead.look(world.beat("node1", replace(STILL, ranks=8000, standing=many)), None)
    told = world.store.get(keys.WATCH_ORDER)
    assert isinstance(told, bytes)
    watch = decode(told, WatchOrder, limit_bytes=module.BEAT_BYTES).watch
    assert watch is not None
    assert len(watch.culprits) == 64
    assert watch.remarks == ("4936 more culprits are told by node 0's watcher",)
