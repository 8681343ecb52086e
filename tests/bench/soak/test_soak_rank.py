"""A soak on real gloo ranks: blocks of verified iterations, rounds of pairs, counters, and its end."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec.structs import replace

from ncclcheck.bench.point import BenchRank
from ncclcheck.bench.soak.soak_rank import _Lead, rest_s
from ncclcheck.bench.supervise import start
from ncclcheck.bench.task import WorkerTask
from ncclcheck.model.bench import BenchPlan
from ncclcheck.model.benchmarks.soak import SoakBlock, SoakPlan

pytestmark = pytest.mark.slow
SOAK = SoakPlan(4.0, 0.5, 0.05, 1.0)
PLAN = BenchPlan("gloo", ("all_reduce", "all_gather"), (1 << 12,), "float32", 1, None, 5.0, True, soak=SOAK)
ENDS_S = 120.0


def blocks_of(soak: SoakPlan, hosts: tuple[str, ...], **changes: Any) -> list[SoakBlock]:
    """The blocks of ranks on these hosts, all of which are this machine."""
    plan = replace(PLAN, soak=soak, **changes)
    tasks = [
        WorkerTask(rank, len(hosts), rank, "127.0.0.1", 0, "test/", plan, hosts) for rank in range(len(hosts))
    ]
    running = start(tasks, {"GLOO_SOCKET_IFNAME": "lo"})
    found: list[SoakBlock] = []
    deadline = time.monotonic() + ENDS_S
    try:
        while time.monotonic() < deadline:
            points, states = running.poll()
            found += [point for point in points if isinstance(point, SoakBlock)]
            if all(state.done or state.exit_code is not None for state in states):
                found += [point for point in running.poll()[0] if isinstance(point, SoakBlock)]
                break
            time.sleep(0.05)
        assert all(state.done for state in states), running.log(0)
    finally:
        running.stop(5.0)
    return found


@pytest.mark.further
def test_blocks_alternate_between_collectives_and_pairs_come_among_them() -> None:
    found = blocks_of(SOAK, ("a", "b"))
    assert [block.number for block in found] == list(range(len(found)))
    assert {block.op for block in found} == {"all_reduce", "all_gather", None}
    for block in found:
        if block.op is None:
            assert {(pair.from_host, pair.to_host) for pair in block.pairs} == {("a", "b"), ("b", "a")}
            assert all(pair.gbit_s > 0 for pair in block.pairs)
            continue
        assert block.wrong == 0
        assert block.iterations == sum(block.times.values()) > 0
        assert 0 < block.median_us <= block.worst_us
        assert [node.host for node in block.nodes] == ["a", "b"]


@pytest.mark.further
def test_a_resumed_soak_numbers_its_blocks_on_and_one_node_has_no_pairs() -> None:
    found = blocks_of(replace(SOAK, first=700, duration_s=2.0, duty=0.5), ("a", "a"), ops=("all_reduce",))
    assert found[0].number == 700
    assert {block.op for block in found} == {"all_reduce"}


def test_a_suspected_drop_repeats_turns_that_were_measured_before() -> None:
    hosts = tuple(f"node{number:02}" for number in range(16))
    plan = replace(PLAN, ops=("all_reduce",))
    task = WorkerTask(0, len(hosts), 0, "127.0.0.1", 0, "test/", plan, hosts)
    lead = _Lead(cast(BenchRank, SimpleNamespace(task=task)), SOAK, ("all_reduce",))
    calm: set[int] = set()
    suspect: set[int] = set()
    for number in range(200):
        following = lead.following(number)
        turns = set(range(following.place, following.place + following.turns))
        if following.kind == "pairs":
            (suspect if lead._judge.is_suspect else calm).update(turns)
            lead.take(SoakBlock(number, 10.0 * number, 10.0))
        else:
            median_us = 1500.0 if number > 150 else 1000.0
            lead.take(SoakBlock(number, 10.0 * number, 10.0, "all_reduce", 9, median_us, median_us))
    assert suspect
    assert suspect <= calm


def test_a_round_of_pairs_leaves_time_to_others_too() -> None:
    plan = replace(SOAK, every_s=10.0, duty=0.2)
    assert rest_s(plan, SoakBlock(0, 0.0, 4.0)) == pytest.approx(16.0)
    assert rest_s(plan, SoakBlock(0, 0.0, 2.0, "all_reduce")) == pytest.approx(8.0)
