"""All nine collectives on the stand-in for `torch.cuda`, with data that are verified; who spoils them is named."""

from __future__ import annotations

import os
from functools import partial
from typing import Any, get_args

import pytest
from msgspec.structs import replace

from ncclcheck.bench.gpu import device
from ncclcheck.bench.gpu.gpu_timer import Call, captured
from ncclcheck.bench.parts_alone import isolate
from ncclcheck.bench.point import measure_all
from ncclcheck.bench.progress_page import new_page, read_page
from ncclcheck.measure.blame import slow_ranks
from ncclcheck.measure.collectives import COLLECTIVES, ROOT, RankContext
from ncclcheck.model.bench import BenchPlan, Op
from tests.bench.cuda_machine import Gpu, Machine
from tests.bench.gpu.stand_in_group import KI, MI, StandInGroup, moved

pytestmark = pytest.mark.slow  # imports torch
OPS: tuple[Op, ...] = get_args(Op)
CLOCKS = (1980.0, 1965.0, 1950.0, 1755.0)
PLAN = BenchPlan("nccl", OPS, (64 * KI, MI), "float32", 2, 12, 5.0, verify=True)
CULPRIT = 2
# Calls before the first batch of timed calls of a plan without warm-up: two exchanges; barrier, gate, call and exchange
# of the first call; barrier and gate. So this is in the middle of that batch, and of a loop.
IN_A_BATCH = 10


def takes_us(op: str, size_bytes: int) -> float:
    """Return the true time of a collective: each another one."""
    return 15.0 + OPS.index(op) + size_bytes / 50e3


def gpus(**changes: Any) -> list[Gpu]:
    """Return four GPUs whose hosts are up to 60 us apart; `changes` are the culprit's."""
    found = [Gpu(clock, wakes_late_us=20.0 * number) for number, clock in enumerate(CLOCKS)]
    for name, value in changes.items():
        setattr(found[CULPRIT], name, value)
    return found


@pytest.mark.parametrize("graph", [False, True], ids=["calls", "graphs"])
def test_every_collective_is_timed_truly_and_verified(
    monkeypatch: pytest.MonkeyPatch, *, graph: bool
) -> None:
    machine = Machine(gpus())
    ranks = StandInGroup(machine, monkeypatch, takes_us).points(PLAN, graph=graph)
    calls = (
        (PLAN.warmup + 12 + 1) * len(PLAN.sizes_bytes) * len(OPS)
    )  # `iters`, and one before a batch of broadcasts
    assert (
        all(calls * 0.9 < replays <= calls for replays in machine.replays)
        if graph
        else not any(machine.replays)
    )
    assert [(point.op, point.size_bytes) for point in ranks[0]] == [
        (op, size) for op in OPS for size in PLAN.sizes_bytes
    ]
    for point in ranks[0]:
        within = 0.01 if point.size_bytes >= MI else 0.10
        assert point.time_us.mean == pytest.approx(takes_us(point.op, point.size_bytes), rel=within), point.op
        assert (point.wrong, point.unstable) == (0, None), point.op
        assert [rank.clock_mhz for rank in point.ranks] == pytest.approx(list(CLOCKS), rel=1e-3)
    assert not slow_ranks(ranks[0])


def test_one_flipped_bit_is_found_in_every_collective(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(gpus(), moves=partial(moved, flips=ROOT))
    plan = replace(PLAN, sizes_bytes=(64 * KI,), iters=4, warmup=0)
    found = StandInGroup(machine, monkeypatch, takes_us).points(plan)[0]
    for point in found:
        own = RankContext(ROOT, len(CLOCKS))
        assert COLLECTIVES[point.op].receives(own)
        assert (point.wrong, point.wrong_ranks) == (4, (ROOT,)), point.op
        assert point.first_wrong is not None
        assert point.first_wrong.got != point.first_wrong.expected


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize(
    ("changes", "state", "says"),
    [
        ({"stalls_at": IN_A_BATCH}, "hung", "its GPU runs nothing any more"),
        ({"fails_at": IN_A_BATCH}, "error", "uncorrectable ECC error"),
        ({"dies_at": IN_A_BATCH}, "died", "SIGKILL"),
    ],
    ids=["hung", "ECC", "killed"],
)
def test_the_culprit_is_named_and_nobody_else(
    monkeypatch: pytest.MonkeyPatch, op: Op, changes: dict[str, Any], state: str, says: str
) -> None:
    plan = replace(PLAN, ops=(op,), sizes_bytes=(64 * KI,), warmup=0)
    (failure,) = StandInGroup(Machine(gpus(**changes)), monkeypatch, takes_us).culprits(plan)
    assert (failure.rank, failure.state) == (CULPRIT, state)
    assert says in failure.detail


def test_each_captured_graph_is_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch has up to 32 of them, and a capture takes a while: it must not look like a hang."""
    page, stamps_ns = new_page("test"), list[int]()

    def capture(call: Call) -> Call:
        stamps_ns.append(read_page(page).stamp_ns)
        return captured(call)

    monkeypatch.setattr(device, "captured", capture)
    plan = replace(PLAN, ops=("all_reduce",), sizes_bytes=(MI,), warmup=0, iters=2)
    group = StandInGroup(Machine([Gpu()]), monkeypatch, takes_us)
    group.on_all(plan, lambda rank: list(measure_all(rank)), pages=[page], graph=True)
    os.close(page)
    assert len(set(stamps_ns)) == len(stamps_ns) > 1


@pytest.mark.parametrize("op", OPS)
def test_victims_whose_calls_are_aborted_are_not_named(monkeypatch: pytest.MonkeyPatch, op: Op) -> None:
    plan = replace(PLAN, ops=(op,), sizes_bytes=(64 * KI,), warmup=0)
    machine = Machine(gpus(dies_at=IN_A_BATCH), peers_fail=True)
    group = StandInGroup(machine, monkeypatch, takes_us)
    states = group.states(plan)
    assert [state.error_kind for state in states] == [
        "communication",
        "communication",
        "none",
        "communication",
    ]
    (failure,) = group.named(states)
    assert (failure.rank, failure.state) == (CULPRIT, "died")


@pytest.mark.parametrize(
    "changes",
    [{"stalls_at": 6}, {"stalls_at": 21}, {"stalls_in_transfers": True}, {"stalls_at": 31}],
    ids=["barrier", "gathering", "transfer", "rates"],
)
def test_a_gpu_that_hangs_while_gpus_are_compared_is_named(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any]
) -> None:
    """It hangs in a barrier, where GPUs tell what they did, in a transfer, or where the rates are told."""
    plan = replace(PLAN, ops=("all_reduce",), sizes_bytes=(64 * KI,), warmup=0)
    group = StandInGroup(Machine(gpus(**changes)), monkeypatch, takes_us)
    (failure,) = group.culprits(plan, lambda rank: isolate(rank, ()))
    assert (failure.rank, failure.state) == (CULPRIT, "hung")
    assert failure.where == "the comparison of single ranks and links"
