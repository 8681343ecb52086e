"""Several GPUs of a node: GPU i measures with GPU i of the partner, and a slow one is named, of its node alone."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest

from ncclcheck.bench.pairs import pair_node
from ncclcheck.bench.pairs.pair_node import PairPlace, run_pairs
from ncclcheck.bench.pairs.pair_orders import PairsOrder
from ncclcheck.bench.pairs.pair_result import pair_isolation
from ncclcheck.bench.pairs.pair_rounds import lead_rounds
from ncclcheck.bench.pairs.pair_task import PairResult, PairTask
from ncclcheck.bench.pairs.round_answers import RoundContext
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.store.memory import MemoryBackend
from ncclcheck.exchange.store.opening import within_process
from ncclcheck.measure.isolation.next_round import Plan

NODES, RAILS = 8, 4
SLOW_NODE, SLOW_RAIL = 5, 2
ORDER = PairsOrder("nccl", 1 << 20, "0" * 16, {}, RAILS)


class _Gpus:
    """What measures on one node, in place of processes on GPUs: notes its tasks, and each rail has its own rate."""

    is_stopped = False
    moved = 0

    def __init__(self, meetings: dict[str, list[PairTask]]) -> None:
        self._meetings, self._tasks = meetings, list[PairTask]()

    def wait_until_ready(self, _seconds: float) -> None:
        return None

    def begin(self, tasks: Sequence[PairTask]) -> None:
        self._tasks = list(tasks)
        for task in tasks:
            self._meetings.setdefault(task.store_prefix, []).append(task)

    def poll(self, number: int) -> tuple[PairResult, ...]:
        if any(len(self._meetings[task.store_prefix]) < task.ranks for task in self._tasks):
            return ()
        return tuple(
            PairResult(number, received_gbit_s=self._rate(task), transfer_s=0.01, rail=task.rail)
            for task in self._tasks
        )

    def _rate(self, task: PairTask) -> float:
        is_slow = task.rail == SLOW_RAIL and f"node{SLOW_NODE}" in _ends_of(task, self._meetings)
        return 200.0 if is_slow else 400.0

    def kill_children(self) -> None:
        pass

    def stop(self) -> None:
        pass


def _ends_of(task: PairTask, meetings: dict[str, list[PairTask]]) -> set[str]:
    """Return the nodes of the two tasks that meet under this prefix; each carries its node in its address."""
    return {own.store_host for own in meetings[task.store_prefix]}


def test_gpu_i_meets_gpu_i_and_a_slow_rail_is_named_with_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    backend, meetings = MemoryBackend(), dict[str, list[PairTask]]()
    monkeypatch.setattr(pair_node, "PairProcess", lambda *_args, **_named: _Gpus(meetings))

    def follow(ticket: int) -> None:
        place = PairPlace(within_process(backend, 0), ticket, f"node{ticket}", "", Deadline(60.0))
        assert run_pairs(place, ORDER) is None

    threads = [threading.Thread(target=follow, args=(ticket,)) for ticket in range(NODES)]
    for thread in threads:
        thread.start()
    lead = RoundContext(within_process(backend, 0), Deadline(60.0), lambda _: None)
    rounds = lead_rounds(lead, range(NODES), Plan(1), lambda _: None)
    for thread in threads:
        thread.join()
    for prefix, tasks in meetings.items():
        assert sorted(task.rank for task in tasks) == [0, 1], prefix
        assert len({task.rail for task in tasks}) == 1, prefix
    assert {task.rail for tasks in meetings.values() for task in tasks} == set(range(RAILS))
    found = pair_isolation({ticket: f"node{ticket}" for ticket in range(NODES)}, Plan(1), rounds)
    (node,) = found.nodes
    assert (node.host, node.verdict, node.rails) == (f"node{SLOW_NODE}", "slow", (SLOW_RAIL,))
