"""The benchmark of a run over a real store: node 0 plans, watches and judges what the nodes say of their workers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any, get_args

import pytest
from msgspec.structs import replace

from ncclcheck.bench.watch import RankState
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.messages import SCHEMA, Bench, Step, read_message
from ncclcheck.exchange.store import TcpStore, join, serve
from ncclcheck.launch.flags import LaunchFlags
from ncclcheck.model.bench import BenchPlan, BenchResult
from ncclcheck.model.codec import decode, encode
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.run.benching import LEAST_S, BenchState, Left, lead_bench, run_local_bench
from ncclcheck.run.context import TOOL_VERSION, Context
from ncclcheck.run.lead import Member, Orders
from ncclcheck.run.options import BenchRequest, RunOptions
from tests.builders import bench_point, cluster, launch, some, with_outcome, with_silent

POINT = bench_point(1 << 20, (1.0, 2.0))
REQUEST = BenchRequest((1 << 10,), ("all_reduce",), "gloo", iters=2, warmup=1, budget_s=5.0)
AGENTS = tuple(Member(rank + 11, launch(rank, 2), f"node0{rank + 1}") for rank in (0, 1))
SMALL = 1 << 20
RUNS = count()


def rank(number: int, **changes: Any) -> RankState:
    """A rank that measured everything."""
    done = RankState(
        rank=number, host=f"node0{number + 1}", pid=4000 + number, stat="S", exit_code=None, ended_s=0.0,
        phase="done", op="all_reduce", size_bytes=1 << 20, iteration=3, inside=False, calls=20,
        idle_s=0.1, longest_call_s=0.1,
    )  # fmt: skip
    return replace(done, **changes)


def word(*states: RankState, points: int = 0, sequence: int = 1, left: Left = "") -> bytes:
    return encode(BenchState(SCHEMA, TOOL_VERSION, sequence, states, points, left))


def changed(old: bytes, new: bytes) -> bytes:
    good = word(rank(0))
    assert good.count(old) == 1
    return good.replace(old, new)


# what a node says


def test_a_word_is_read_as_it_was_said() -> None:
    said = word(rank(0), rank(1, exit_code=-9, stat=""), points=2, sequence=7, left="interrupted")
    message = read_message(said, BenchState, SMALL)
    assert (message.sequence, message.points, message.left) == (7, 2, "interrupted")
    assert message.states == (rank(0), rank(1, exit_code=-9, stat=""))


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\x80\x04.",
        changed(b'"schema_version":"1"', b'"schema_version":"2"'),
        changed(b'"sequence":1', b'"sequence":"1"'),
        changed(b'"sequence":1', b'"sequence":1,"shell":"sh"'),
        changed(b'"done"', b'"dancing"'),
        changed(b"4000", b'"4000"'),
        changed(b'"points":0', b'"points":null'),
        changed(b'"left":""', b'"left":"bored"'),
    ],
)
def test_a_word_that_is_none_is_refused(message: bytes) -> None:
    with pytest.raises(DecodeError):
        read_message(message, BenchState, SMALL)


# node 0


@pytest.fixture(scope="module")
def server() -> TcpStore:
    found = serve(0, "server/", Deadline(60))
    assert isinstance(found, TcpStore)
    return found


@pytest.fixture
def prefix() -> str:
    return f"{next(RUNS)}/"


@pytest.fixture
def store(server: TcpStore, prefix: str) -> TcpStore:
    return client(server, prefix)


def client(server: TcpStore, prefix: str) -> TcpStore:
    found = join("127.0.0.1", server.port, prefix, Deadline(10))
    assert isinstance(found, TcpStore)
    return found


def context(say: Callable[[str], None] = lambda _: None, **changes: Any) -> Context:
    options = RunOptions("bench", LaunchFlags(nproc_per_node=1), bench=replace(REQUEST, **changes))
    return Context(options, {}, launch(0, 2), "node01", Deadline(60), say)


class Nodes:
    """The nodes of a run, in a thread: they get the order, say their words, and end when they are told to."""

    def __init__(self, store: TcpStore, words: Mapping[int, bytes], points: tuple[bytes, ...]) -> None:
        self.order: Bench | None = None
        self.stopped = False
        self._store, self._words, self._points = store, words, points
        self._thread = threading.Thread(target=self._run, name="nodes", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        step = self._store.wait_document("step/0", Deadline(20))
        order = decode(some(step), Step).order
        assert isinstance(order, Bench)
        self.order = order
        for number, point in enumerate(self._points):
            self._store.set_document(f"bench/point/{number}", point)
        for ticket, text in self._words.items():
            self._store.set(f"bench/state/{ticket}", text)
        self.stopped = not isinstance(self._store.wait("bench/stop", Deadline(30)), Missing)
        for ticket in self._words:
            self._store.set_document(f"bench/done/{ticket}", b"[]")

    def order_once_ended(self) -> Bench:
        self._thread.join(30)
        assert self.stopped  # whatever became of the run, the nodes were told to end their workers
        assert self.order is not None
        return self.order


Start = Callable[..., Nodes]


@pytest.fixture
def nodes(server: TcpStore, prefix: str) -> Start:
    return lambda words, *points: Nodes(client(server, prefix), words, points)


def led(
    store: TcpStore,
    snapshot: Snapshot | None = None,
    *,
    at: Context | None = None,
    agents: tuple[Member, ...] = AGENTS,
    seconds: float = 30,
    keep: Callable[[BenchResult], None] = lambda _: None,
) -> Fact[BenchResult]:
    return lead_bench(
        at or context(), Orders(store), store, agents, snapshot or cluster(2), Deadline(seconds), keep
    )


@pytest.mark.slow
def test_a_run_ends_when_every_rank_is_done_and_its_points_are_kept_on_the_way(
    store: TcpStore, nodes: Start
) -> None:
    there = nodes({11: word(rank(0), points=1), 12: word(rank(1))}, encode(POINT))
    said: list[str] = []
    kept: list[BenchResult] = []
    deadline = Deadline(30)
    result = some(led(store, at=context(said.append), keep=kept.append))
    assert deadline.left() > 20
    assert (result.points, result.failures, result.started, result.world_size) == ((POINT,), (), True, 2)
    assert result.environment == {host: {"GLOO_SOCKET_IFNAME": "eth0"} for host in ("node01", "node02")}
    assert [one.points for one in kept] == [(POINT,)]
    assert said[0].startswith("measuring with 2 ranks over gloo over TCP on eth0")
    assert said[1] == "all_reduce 1048576 B: bus bandwidth 1.500 GB/s"
    there.order_once_ended()


@pytest.mark.slow
def test_the_order_says_who_starts_which_ranks_and_how(store: TcpStore, nodes: Start) -> None:
    there = nodes({11: word(rank(0)), 12: word(rank(1))})
    led(store, seconds=20)
    order = there.order_once_ended()
    assert (order.world_size, order.hosts) == (2, ("node01", "node02"))
    assert (order.first_rank, order.count) == ({"11": 0, "12": 1}, {"11": 1, "12": 1})
    assert order.environments == {ticket: {"GLOO_SOCKET_IFNAME": "eth0"} for ticket in ("11", "12")}
    assert (order.plan.ops, order.plan.sizes_bytes, order.plan.backend) == (
        ("all_reduce",),
        (1 << 10,),
        "gloo",
    )
    assert order.plan.budget_s == 5.0
    assert 0 < order.deadline_s <= 20


@pytest.mark.slow
def test_a_dead_rank_ends_the_run_by_name_and_what_was_measured_stays(store: TcpStore, nodes: Start) -> None:
    running = {"phase": "measuring", "inside": True}
    there = nodes(
        {
            11: word(rank(0, **running), points=1),
            12: word(rank(1, **{**running, "exit_code": -9, "stat": ""})),
        },
        encode(POINT),
    )
    result = some(led(store))
    ((host, state),) = [(one.host, one.state) for one in result.failures]
    assert (host, state) == ("node02", "died")
    assert result.points == (POINT,)
    there.order_once_ended()


@pytest.mark.slow
def test_at_the_deadline_the_run_ends_without_blaming_anybody(store: TcpStore, nodes: Start) -> None:
    busy = {"phase": "measuring", "inside": True}
    there = nodes({11: word(rank(0, **busy)), 12: word(rank(1, **busy))})
    result = some(led(store, seconds=LEAST_S + 0.2))
    assert (result.failures, result.points, result.started) == ((), (), True)
    assert "--timeout was over after 0 of 1 points, in all_reduce 1M, iteration 3" in result.unfinished
    there.order_once_ended()


@pytest.mark.slow
def test_a_node_whose_own_time_is_over_ends_the_run_without_blame_and_one_that_was_interrupted_with_it(
    server: TcpStore, prefix: str
) -> None:
    busy = {"phase": "measuring", "inside": True}
    for left in get_args(Left)[1:]:
        store = client(server, f"{prefix}{left}/")
        words = {11: word(rank(0, **busy)), 12: word(rank(1, **busy), left=left)}
        there = Nodes(client(server, f"{prefix}{left}/"), words, ())
        result = some(led(store))
        blamed = [one.host for one in result.failures]
        assert blamed == (["node02"] if left == "interrupted" else [])
        assert ("--timeout of node02 was over" in result.unfinished) is (left == "timeout")
        there.order_once_ended()


@pytest.mark.slow
def test_a_point_that_is_none_is_refused_and_said_once(store: TcpStore, nodes: Start) -> None:
    busy = {"phase": "measuring", "inside": True}
    there = nodes({11: word(rank(0, **busy), points=1), 12: word(rank(1, **busy), left="timeout")}, b"{}")
    said: list[str] = []
    assert some(led(store, at=context(said.append))).points == ()
    assert len([text for text in said if "a point of the benchmark was refused" in text]) == 1
    there.order_once_ended()


@pytest.mark.slow
def test_a_node_whose_words_are_refused_is_lost_and_the_refusal_is_said_once(
    store: TcpStore, nodes: Start
) -> None:
    there = nodes({11: word(rank(0, phase="joining", inside=True)), 12: b'{"schema_version":"9"}'})
    said: list[str] = []
    result = some(led(store, at=context(said.append)))
    assert {one.state for one in result.failures} == {"lost"}
    assert "node02" in {one.host for one in result.failures}
    refusals = [text for text in said if "refused" in text]
    assert len(refusals) == 1
    assert refusals[0].startswith("a word of node02 about its workers was refused: schema version '9'")
    there.order_once_ended()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("snapshot", "seconds", "why"),
    [
        (with_silent(cluster(3), "node03"), 30.0, "needs all nodes; silent: node03"),
        (replace(cluster(2), claims=(launch(0, 2),) * 2), 30.0, "node ranks clash"),
        (cluster(2), LEAST_S - 1, "4 s were left of --timeout"),
        (
            with_outcome(cluster(2), "filtered", [("node01", "node02"), ("node02", "node01")]),
            30.0,
            "no interface on which all nodes reach each other",
        ),
    ],
    ids=["silent", "clash", "late", "unreached"],
)
def test_what_cannot_be_measured_is_refused_before_anybody_starts(
    store: TcpStore, snapshot: Snapshot, seconds: float, why: str
) -> None:
    result = led(store, snapshot, seconds=seconds)
    assert isinstance(result, Missing)
    assert why in result.detail
    for key in ("step/0", "bench/stop"):
        assert isinstance(store.get(key), Missing)


# a node


@pytest.fixture
def order() -> Bench:
    """An order that has no rank for ticket 12."""
    plan = BenchPlan("gloo", ("all_reduce",), (1 << 10,), "float32", 0, 2, 5.0, True)
    return Bench(plan, 1, ("node01",), {"11": 0}, {"11": 1}, {"11": {"GLOO_SOCKET_IFNAME": "lo"}}, "n", 30.0)


@pytest.mark.slow
def test_a_node_says_where_its_workers_are_until_it_is_told_to_stop(store: TcpStore, order: Bench) -> None:
    store.set("bench/stop", b"1")
    deadline = Deadline(30)
    run_local_bench(context(), store, 12, order)
    assert deadline.left() > 25
    message = read_message(some(store.get("bench/state/12")), BenchState, SMALL)
    assert (message.sequence, message.states, message.points, message.left) == (1, (), 0, "")
    assert store.get_document("bench/done/12") == b"[]"


@pytest.mark.slow
def test_a_node_that_is_never_told_anything_ends_with_the_order(store: TcpStore, order: Bench) -> None:
    run_local_bench(context(), store, 12, replace(order, deadline_s=0.5))
    assert read_message(some(store.get("bench/state/12")), BenchState, SMALL).left == "timeout"
    assert store.get_document("bench/done/12") == b"[]"


class GoneStore:
    """torch's TCPStore after its server died: every call raises."""

    port = 29500

    def __getattr__(self, name: str) -> Callable[..., object]:
        def call(*_: object) -> object:
            raise RuntimeError(f"{name}: Connection reset by peer")

        return call


def test_a_node_that_lost_node_0_ends_its_workers(order: Bench) -> None:
    deadline = Deadline(30)
    run_local_bench(context(), TcpStore(GoneStore(), "lost/"), 12, order)
    assert deadline.left() > 25


@pytest.mark.slow
def test_node_0_and_its_own_worker_measure_together(server: TcpStore, prefix: str, store: TcpStore) -> None:
    place = replace(launch(0, 1), nproc_per_node=1)
    at = replace(context(), launch=place)
    theirs = client(server, prefix)

    def follow() -> None:
        step = decode(some(theirs.wait_document("step/0", Deadline(20))), Step).order
        assert isinstance(step, Bench)
        run_local_bench(at, theirs, 11, step)

    node = threading.Thread(target=follow, name="node", daemon=True)
    node.start()
    snapshot = cluster(1)
    snapshot = replace(
        snapshot,
        nodes=(replace(snapshot.nodes[0], facts=replace(snapshot.nodes[0].facts, launch=place)),),
    )
    result = some(led(store, snapshot, at=at, agents=(Member(11, place, "node01"),), seconds=60))
    node.join(30)
    assert not node.is_alive()
    assert result.failures == ()
    assert [(one.op, one.size_bytes, one.iters, one.wrong) for one in result.points] == [
        ("all_reduce", 1 << 10, 2, 0)
    ]
    assert store.get_document("bench/done/11") == b"[]"
