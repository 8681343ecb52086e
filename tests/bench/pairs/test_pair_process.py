"""Two real processes measure a pair over a real store; one that hangs is killed and the next pair still works."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from ncclcheck.bench.pairs.pair_process import PairProcess
from ncclcheck.bench.pairs.pair_task import PairResult, PairTask
from ncclcheck.exchange.store.base import Store
from ncclcheck.spawn.process import state_letter

pytestmark = pytest.mark.slow  # each imports torch
WAIT_S = 60.0


@pytest.fixture
def two() -> Iterator[list[PairProcess]]:
    processes = [PairProcess({"GLOO_SOCKET_IFNAME": "lo"}, on_nccl=False) for _ in range(2)]
    try:
        assert [process.wait_until_ready(WAIT_S) for process in processes] == [None, None]
        yield processes
    finally:
        for process in processes:
            process.stop()


def task(store: Store, prefix: str, number: int, rank: int) -> PairTask:
    return PairTask(
        number, rank, 0, "127.0.0.1", store.port, f"{prefix}{number}/", "gloo", 1 << 20, join_s=5.0
    )


def result_of(process: PairProcess, number: int) -> PairResult:
    deadline = time.monotonic() + WAIT_S
    while not (results := process.poll(number)):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return results[0]


def test_a_pair_measures_both_ways_and_goes_on_after_one_that_hung(
    two: list[PairProcess], server: Store, prefix: str
) -> None:
    for rank, process in enumerate(two):
        process.begin([task(server, prefix, 1, rank)])
    for result in [result_of(process, 1) for process in two]:
        assert (result.error, result.wrong) == ("", 0)
        assert result.received_gbit_s is not None
        assert result.received_gbit_s > 0
    two[0].begin([task(server, prefix, 2, 0)])  # its partner never comes
    while not two[0].children:
        assert not two[0].poll(2)
        time.sleep(0.01)
    os.kill(two[0].children[0], signal.SIGSTOP)
    while not two[0].is_stopped:
        time.sleep(0.01)
    hanging = two[0].children[0]
    two[0].kill_children()
    for rank, process in enumerate(two):
        process.begin([task(server, prefix, 3, rank)])
    assert [result_of(process, 3).error for process in two] == ["", ""]
    assert not state_letter(hanging)


def test_a_child_that_dies_is_told_with_its_last_words(
    two: list[PairProcess], server: Store, prefix: str
) -> None:
    two[0].begin([task(server, prefix, 1, 0)])
    while not two[0].children:
        assert not two[0].poll(1)
        time.sleep(0.01)
    os.kill(two[0].children[0], signal.SIGKILL)
    assert "its process died" in result_of(two[0], 1).error


def test_a_pair_measures_both_ways_at_once_together_with_the_others_and_its_round_trip(
    two: list[PairProcess], server: Store, prefix: str
) -> None:
    asked = [
        replace(
            task(server, prefix, 4, rank),
            at_once=True,
            round_trips=50,
            barrier_ranks=2,
            round_prefix=f"{prefix}barrier",
        )
        for rank in range(2)
    ]
    for process, own in zip(two, asked, strict=True):
        process.begin([own])
    first, second = (result_of(process, 4) for process in two)
    for result in (first, second):
        assert (result.error, result.wrong) == ("", 0)
        assert (result.received_gbit_s or 0.0) > 0
    assert 0 < first.round_trip_us < 1e6
    assert second.round_trip_us == 0.0
