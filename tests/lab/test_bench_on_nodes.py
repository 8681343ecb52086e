"""run and bench on real nodes: figures that are right, and the name of the rank that spoils them."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.lab import faults
from tests.lab.launched import Told, run, start, told
from tests.lab.nodes import Lab, Node
from tests.lab.process import Running

pytestmark = [pytest.mark.lab, pytest.mark.slow]
alone = pytest.mark.alone
LabOf = Callable[..., Lab]
LONG = (
    "bench",
    "--sizes",
    "1M",
    "--ops",
    "all_reduce",
    "--iters",
    "100000",
    "--timeout",
    "120",
    "--no-preflight",
)


def worker_of(node: Node) -> int:
    """Process id of the benchmark worker on the node."""
    (pid,) = [pid for pid, line in node.processes().items() if "ncclcheck.bench.worker" in line]
    return pid


def measuring(lab: Lab, running: dict[str, Running], timeout_s: float = 90) -> None:
    """Return once every node's worker computes: it has used CPU time in its group for a while."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if all(any("bench.worker" in line for line in node.processes().values()) for node in lab.nodes):
            established = [node for node in lab.nodes if _group_connections(node) >= len(lab.nodes) - 1]
            if len(established) == len(lab.nodes):
                return
        time.sleep(0.1)
    raise AssertionError(f"no benchmark after {timeout_s} s: {[str(one.stderr) for one in running.values()]}")


def _group_connections(node: Node) -> int:
    """TCP connections of the worker to other nodes, the store's apart, as the kernel lists them."""
    worker = [pid for pid, line in node.processes().items() if "ncclcheck.bench.worker" in line]
    if not worker:
        return 0
    lines = Path(f"/proc/{worker[0]}/net/tcp").read_text().splitlines()[1:]
    store = f":{29500:04X}"
    return sum(1 for line in lines if line.split()[3] == "01" and store not in line)


def points(one: Told) -> dict[tuple[str, int], dict[str, Any]]:
    assert one.report is not None
    return {(point["op"], point["size_bytes"]): point for point in one.report["bench"]["points"]}


def test_run_on_four_healthy_nodes_measures_and_verifies(lab: LabOf) -> None:
    four = lab(4)
    outcomes = run(four, "run", "--sizes", "64K,1M", "--iters", "5", "--timeout", "120")
    first = outcomes["node1"]
    assert first.code == 0, str(first.finished)
    found = points(first)
    assert set(found) == {(op, size) for op in ("all_reduce", "all_gather") for size in (65536, 1 << 20)}
    for (op, size), point in found.items():
        assert point["wrong"] == 0
        seconds = point["time_us"]["mean"] / 1e6
        factor = {"all_reduce": 2 * 3 / 4, "all_gather": 3 / 4}[op]
        assert point["algbw_gb_s"] == pytest.approx(size / 1e9 / seconds, rel=0.01)
        assert point["busbw_gb_s"] == pytest.approx(size / 1e9 / seconds * factor, rel=0.01)
    assert first.report is not None
    assert "eth0" in first.report["bench"]["transport"]
    assert "busbw" in first.finished.stdout
    assert four.leftovers() == ()


@pytest.mark.further
@alone
def test_a_shaped_link_is_measured_as_what_it_is(lab: LabOf) -> None:
    two = lab(2)
    for node in two.nodes:
        faults.shape(node, "200mbit")
    outcomes = run(two, "bench", "--sizes", "4M", "--ops", "all_reduce", "--iters", "5", "--timeout", "120")
    busbw = points(outcomes["node1"])["all_reduce", 4 << 20]["busbw_gb_s"]
    assert 0.85 * 0.025 <= busbw <= 1.05 * 0.025


@alone
def test_a_killed_worker_is_named_at_once(lab: LabOf) -> None:
    three = lab(3)
    running = start(three, *LONG)
    measuring(three, running)
    os.kill(worker_of(three["node2"]), signal.SIGKILL)
    killed = time.monotonic()
    outcomes = told(three, running, 60)
    assert time.monotonic() - killed <= 15
    finding = outcomes["node1"].finding("bench-hang")
    assert finding["hosts"] == ["node2"]
    assert "SIGKILL" in str(finding)
    assert {outcome.code for outcome in outcomes.values()} == {4}
    assert three.leftovers() == ()


@alone
def test_a_stopped_worker_is_named_and_its_victims_are_not(lab: LabOf) -> None:
    three = lab(3)
    running = start(three, *LONG)
    measuring(three, running)
    os.kill(worker_of(three["node3"]), signal.SIGSTOP)
    stopped = time.monotonic()
    outcomes = told(three, running, 60)
    assert time.monotonic() - stopped <= 20
    assert [finding["hosts"] for finding in outcomes["node1"].findings("bench-hang")] == [["node3"]]
    assert {outcome.code for outcome in outcomes.values()} == {4}
    assert three.leftovers() == ()


@pytest.mark.further
@alone
def test_a_stopped_agent_is_named(lab: LabOf) -> None:
    three = lab(3)
    running = start(three, *LONG)
    measuring(three, running)
    running["node2"].signal(signal.SIGSTOP)
    stopped = time.monotonic()
    outcomes = told(three, {name: running[name] for name in ("node1", "node3")}, 60)
    assert time.monotonic() - stopped <= 25
    assert outcomes["node1"].code == 4
    assert outcomes["node1"].finding("bench-hang")["hosts"] == ["node2"]
    running["node2"].signal(signal.SIGKILL, group=True)


@pytest.mark.further
@alone
def test_a_slow_worker_is_named(lab: LabOf) -> None:
    """The worker of node3 is stopped for 30 of every 60 ms while the others measure."""
    three = lab(3)
    words = (
        "bench",
        "--sizes",
        "1M",
        "--ops",
        "all_reduce",
        "--iters",
        "120",
        "--timeout",
        "120",
        "--no-preflight",
    )
    running = start(three, *words)
    measuring(three, running)
    slow = worker_of(three["node3"])
    while running["node1"].alive:
        try:
            os.kill(slow, signal.SIGSTOP)
            time.sleep(0.03)
            os.kill(slow, signal.SIGCONT)
        except ProcessLookupError:
            break
        time.sleep(0.03)
    outcomes = told(three, running, 60)
    assert outcomes["node1"].finding("bench-slow-rank")["hosts"] == ["node3"]
    assert {outcome.code for outcome in outcomes.values()} == {0}


@pytest.mark.further
@alone
def test_ctrl_c_in_the_benchmark_prints_what_there_is(lab: LabOf) -> None:
    two = lab(2)
    running = start(two, *LONG)
    measuring(two, running)
    for one in running.values():
        one.signal(signal.SIGINT)
    pressed = time.monotonic()
    outcomes = told(two, running, 30)
    assert time.monotonic() - pressed <= 10
    assert {outcome.code for outcome in outcomes.values()} == {130}
    assert all(outcome.report is not None for outcome in outcomes.values())
    assert two.leftovers() == ()
