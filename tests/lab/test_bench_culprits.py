"""A rank or a link that is slow in a way of its own: the node is named with what is slow about it, and nobody else."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from tests.lab import faults
from tests.lab.launched import run, start, told
from tests.lab.namespaces import call, inside
from tests.lab.nodes import Lab
from tests.lab.test_bench_on_nodes import LONG, measuring, worker_of

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.alone]
LabOf = Callable[..., Lab]
SHORT = ("bench", "--no-preflight", "--ops", "all_reduce", "--timeout", "60")
CORE = max(os.sched_getaffinity(0))


@contextmanager
def busy_core(count: int) -> Iterator[None]:
    """So many processes that do nothing but keep one core busy."""
    argv = ["taskset", "-c", str(CORE), "sh", "-c", "while :; do :; done"]
    running = [subprocess.Popen(argv) for _ in range(count)]
    try:
        yield
    finally:
        for one in running:
            one.kill()
            one.wait()


def test_a_node_that_sends_slowly_is_named_with_the_direction(lab: LabOf) -> None:
    three = lab(3)
    for node in three.nodes:
        faults.shape(node, "1gbit")
    bucket = ["root", "tbf", "rate", "100mbit", "burst", "256kb", "latency", "50ms"]
    call(inside(three["node3"].namespace, ["tc", "qdisc", "replace", "dev", "eth0", *bucket]))
    outcomes = run(three, *SHORT, "--sizes", "256K", "--iters", "10")
    (finding,) = outcomes["node1"].findings("bench-slow-rank")
    assert finding["hosts"] == ["node3"]
    assert "its link is slow, in this direction only. node3 sends with" in finding["summary"]


def test_a_rank_whose_core_is_taken_is_named(lab: LabOf) -> None:
    three = lab(3)
    running = start(three, *SHORT, "--sizes", "256K,1M", "--iters", "100")
    measuring(three, running)
    call(["taskset", "-acp", str(CORE), str(worker_of(three["node3"]))])
    with busy_core(2):
        outcomes = told(three, running, 60)
    findings = outcomes["node1"].findings("bench-slow-rank")
    assert [finding["hosts"] for finding in findings] == [["node3"]], findings
    assert "core" in findings[0]["summary"]
    assert {outcome.code for outcome in outcomes.values()} == {0}


@pytest.mark.parametrize("pause_s", [3.0, pytest.param(5.0, marks=pytest.mark.further)])
def test_a_node_that_dies_while_node_0_stands_still_is_named_and_not_its_victims(
    lab: LabOf, pause_s: float
) -> None:
    three = lab(3)
    running = start(three, *LONG)
    measuring(three, running)
    for pid in three["node3"].processes():
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    running["node1"].signal(signal.SIGSTOP)
    time.sleep(pause_s)
    running["node1"].signal(signal.SIGCONT)
    outcome = told(three, {name: running[name] for name in ("node1", "node2")}, 90)["node1"]
    assert [finding["hosts"] for finding in outcome.findings("bench-hang")] == [["node3"]], outcome.last_line
    assert outcome.code == 4
