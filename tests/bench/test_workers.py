"""Real workers over real gloo on loopback: measured, killed, stopped, slowed, and never left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from msgspec.structs import replace

from ncclcheck.bench.culprits import DEADLINES, RankState, all_done, judge
from ncclcheck.bench.progress_page import ErrorKind, ProgressPage
from ncclcheck.bench.supervise import Running, start
from ncclcheck.bench.task import WorkerTask
from ncclcheck.bench.worker import _kind
from ncclcheck.model.bench import BenchPlan, Point, RankFailure
from ncclcheck.spawn.process import state_letter

pytestmark = pytest.mark.slow
HOSTS = ("node01", "node02")
HEARD = dict.fromkeys(HOSTS, 0.0)
QUICK = BenchPlan("gloo", ("all_reduce", "all_gather"), (1 << 10, 1 << 20), "float32", 2, 8, 5.0, verify=True)
ENDLESS = replace(QUICK, ops=("all_reduce",), sizes_bytes=(1 << 16,), iters=10**7)
LIMIT_S = 60.0


@contextmanager
def workers(plan: BenchPlan) -> Iterator[Running]:
    """Two ranks that meet in a store of rank 0, stopped at the end."""
    tasks = [WorkerTask(rank, 2, rank, "127.0.0.1", 0, "test/", plan, HOSTS) for rank in (0, 1)]
    running = start(tasks, {"GLOO_SOCKET_IFNAME": "lo"})
    try:
        yield running
    finally:
        assert running.stop(5.0) == ()


def poll_until(
    running: Running, enough: Callable[[tuple[RankState, ...]], object], points: list[Point] | None = None
) -> tuple[RankState, ...]:
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline:
        found, states = running.poll()
        if points is not None:
            points += [point for point in found if isinstance(point, Point)]
        if enough(states):
            return states
        time.sleep(0.02)
    raise AssertionError(f"not within {LIMIT_S} s: {running.poll()[1]}")


def measuring(states: tuple[RankState, ...]) -> bool:
    return all(state.phase in ("measuring", "agreeing") and state.iteration > 0 for state in states)


def failure_of(running: Running, **deadlines: float) -> tuple[RankFailure, ...]:
    named: list[RankFailure] = []

    def judged(states: tuple[RankState, ...]) -> bool:
        named[:] = judge(states, HOSTS, HEARD, replace(DEADLINES, **deadlines))
        return bool(named)

    poll_until(running, judged)
    return tuple(named)


def test_two_healthy_ranks_measure_and_verify_every_point() -> None:
    points: list[Point] = []
    with workers(QUICK) as running:
        states = poll_until(running, lambda states: all_done(states, 2), points)
        assert judge(states, HOSTS, HEARD) == ()
        poll_until(running, lambda states: all(state.exit_code == 0 for state in states), points)
    assert running.isolation is not None
    assert [core.rank for core in running.isolation.cores] == [0, 1]
    assert {(link.from_host, link.to_host) for link in running.isolation.links} == {HOSTS, HOSTS[::-1]}
    assert all(link.gb_s > 0 for link in running.isolation.links)
    assert [(point.op, point.size_bytes) for point in points] == [
        ("all_reduce", 1 << 10), ("all_reduce", 1 << 20), ("all_gather", 1 << 10), ("all_gather", 1 << 20),
    ]  # fmt: skip
    for point in points:
        assert point.wrong == 0
        assert point.iters == 8
        assert point.time_us.p99 is None
        assert point.algbw_gb_s == pytest.approx(point.size_bytes / point.time_us.mean / 1e3)
        assert point.busbw_gb_s == pytest.approx(point.algbw_gb_s * (1 if point.op == "all_reduce" else 0.5))
        assert [rank.host for rank in point.ranks] == list(HOSTS)


@pytest.mark.alone
def test_a_killed_worker_is_named_within_two_seconds() -> None:
    with workers(ENDLESS) as running:
        victim = poll_until(running, measuring)[1]
        os.kill(victim.pid, signal.SIGKILL)
        began = time.monotonic()
        (failure,) = failure_of(running)
        assert time.monotonic() - began < 2.0
        assert (failure.rank, failure.host, failure.state) == (1, "node02", "died")
        assert failure.where.startswith("all_reduce 64K")


def test_a_stopped_worker_is_named_and_killed() -> None:
    with workers(ENDLESS) as running:
        victim = poll_until(running, measuring)[0]
        os.kill(victim.pid, signal.SIGSTOP)
        (failure,) = failure_of(running, stopped_s=1.0)
        assert (failure.rank, failure.state) == (0, "stopped")
        assert running.stop(5.0) == ()
        assert state_letter(victim.pid) in ("", "Z")


def test_a_rank_0_that_is_killed_is_named_though_the_store_goes_with_it() -> None:
    with workers(ENDLESS) as running:
        victim = poll_until(running, measuring)[0]
        os.kill(victim.pid, signal.SIGKILL)
        (failure,) = failure_of(running)
        assert (failure.rank, failure.state) == (0, "died")


def test_a_worker_that_cannot_start_says_why() -> None:
    with workers(replace(QUICK, dtype="float99")) as running:
        failures = failure_of(running)
        assert {failure.state for failure in failures} == {"error"}
        assert "float99" in failures[0].detail


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (RuntimeError("Connection closed by peer"), "communication"),
        (MemoryError(), "own"),
        (NotImplementedError("no listen fd"), "own"),  # a bug: nobody else and no network caused it
        (TypeError("unexpected keyword argument"), "own"),
    ],
)
def test_an_error_in_a_call_is_the_networks_only_if_a_network_can_cause_it(
    error: Exception, kind: ErrorKind
) -> None:
    progress = ProgressPage(None)
    progress.enter()
    assert _kind(error, progress) == kind


@pytest.mark.alone
def test_a_rank_that_is_stopped_now_and_then_is_the_late_one() -> None:
    points: list[Point] = []
    finished = threading.Event()
    plan = replace(QUICK, ops=("all_reduce",), sizes_bytes=(1 << 20,), iters=400, verify=False)

    def pulse(pid: int) -> None:
        while not finished.wait(0.03):
            os.kill(pid, signal.SIGSTOP)
            time.sleep(0.03)
            os.kill(pid, signal.SIGCONT)

    with workers(plan) as running:
        victim = poll_until(running, measuring)[1]
        pulses = threading.Thread(target=pulse, args=(victim.pid,))
        pulses.start()
        try:
            poll_until(running, lambda _: points, points)
        finally:
            finished.set()
            pulses.join()
    steady, pulsed = points[0].ranks
    assert pulsed.late_us > 3 * steady.late_us
    assert pulsed.late_us > 0.2 * points[0].time_us.mean


AGENT = """
import sys, time, threading
import torch.distributed as dist
from ncclcheck.bench.progress_page import ErrorKind, ProgressPage
from ncclcheck.bench.supervise import start
from ncclcheck.bench.task import WorkerTask
from ncclcheck.bench.worker import _kind
from ncclcheck.model.bench import BenchPlan

plan = BenchPlan("gloo", ("all_reduce",), (65536,), "float32", 2, 10**7, 5.0, True)
store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
tasks = [WorkerTask(r, 2, r, "127.0.0.1", store.port, "t/", plan, ("a", "b")) for r in (0, 1)]
found = []
starter = threading.Thread(target=lambda: found.append(start(tasks, {"GLOO_SOCKET_IFNAME": "lo"})))
starter.start()
starter.join()
while not all(state.phase == "measuring" for state in found[0].poll()[1]):
    time.sleep(0.02)
print(*(state.pid for state in found[0].poll()[1]), flush=True)
time.sleep(60)
"""


@pytest.mark.further
def test_workers_outlive_the_thread_that_started_them_but_not_the_agent_not_even_stopped() -> None:
    agent = subprocess.Popen([sys.executable, "-c", AGENT], stdout=subprocess.PIPE)
    try:
        assert agent.stdout is not None
        pids = [int(word) for word in agent.stdout.readline().split()]
        assert len(pids) == 2
        os.kill(pids[0], signal.SIGSTOP)
    finally:
        agent.kill()
        agent.communicate()
    deadline = time.monotonic() + 5
    while any(state_letter(pid) not in ("", "Z") for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert [state_letter(pid) for pid in pids if state_letter(pid) not in ("", "Z")] == []
