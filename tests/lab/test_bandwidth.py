"""The bandwidth of shaped links as the benchmark sees it, beside iperf3's and a hand-written loop's in the same lab."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from statistics import fmean
from typing import Any

import pytest

from tests.lab import faults
from tests.lab.launched import run
from tests.lab.namespaces import call, inside
from tests.lab.nodes import PYTHON, REPOSITORY, Lab

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.alone]
LabOf = Callable[..., Lab]
SIZE = 2 << 20
RATE = "200mbit"  # so slow that waiting for a core, some ms, is lost in the 85 ms of a call
ITERATIONS = 6  # the fewest of which a 95 % interval of the median can be told


def shaped(lab: Lab, rate: str) -> Lab:
    for node in lab.nodes:
        faults.shape(node, rate)
    return lab


def goodput_gb_s(lab: Lab) -> float:
    """What iperf3 carries from the second node to the first: the most of three times, since others only take away."""
    return max(carried_gb_s(lab) for _ in range(3))


def carried_gb_s(lab: Lab) -> float:
    """What iperf3 carries in one second, after a first one that does not count."""
    first, second = lab.nodes[:2]
    with first.service(["iperf3", "--server"]):
        deadline = time.monotonic() + 10
        while not call(inside(first.namespace, ["ss", "-H", "-l", "-t", "-n", "sport = :5201"])):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        done = second.run(["iperf3", "--client", first.address, "--time", "1", "--omit", "1", "--json"])
    assert done.returncode == 0, str(done)
    return float(json.loads(done.stdout)["end"]["sum_received"]["bits_per_second"]) / 8e9


def loop_us(lab: Lab, *ops: str) -> dict[str, tuple[float, float]]:
    """Mean time of each op in a hand-written loop, the slowest rank's, and by how much its two halves differ."""
    words = [str(len(lab.nodes)), lab.nodes[0].address, "29611", str(SIZE), str(ITERATIONS), *ops]
    script = str(REPOSITORY / "tests/lab/hand_loop.py")
    commands = {node: [PYTHON, "-W", "ignore", script, str(node.rank), *words] for node in lab.nodes}
    environment = {"GLOO_SOCKET_IFNAME": "eth0", "TORCH_CPP_LOG_LEVEL": "ERROR"}
    done = list(lab.run_all(commands, environment).values())
    assert all(finished.returncode == 0 for finished in done), list(map(str, done))
    ranks = [json.loads(finished.stdout.splitlines()[-1]) for finished in done]
    slowest = {op: max((rank[op] for rank in ranks), key=sum) for op in ops}
    half = ITERATIONS // 2
    return {
        op: (fmean(own) * 1e6, abs(fmean(own[:half]) - fmean(own[half:])) * 1e6)
        for op, own in slowest.items()
    }


def measured(lab: Lab, *words: str) -> dict[str, dict[str, Any]]:
    """Op -> its point, as node 1 reports it."""
    plan = ("--sizes", str(SIZE), "--iters", str(ITERATIONS), "--warmup", "2", "--timeout", "120")
    first = run(lab, "bench", "--no-preflight", *plan, *words)["node1"]
    assert first.code == 0, str(first.finished)
    assert first.report is not None
    return {point["op"]: point for point in first.report["bench"]["points"]}


@pytest.mark.skipif(shutil.which("iperf3") is None, reason="iperf3 is not installed")
@pytest.mark.further
def test_bandwidth_is_that_of_iperf3_time_that_of_a_loop_and_a_second_run_agrees(lab: LabOf) -> None:
    two = shaped(lab(2), RATE)
    goodput = goodput_gb_s(two)
    # Not those in which two ranks of Gloo send now at the same time and now one after the other (docs/measurements.md).
    ops = ("all_reduce", "broadcast", "scatter")
    loop = loop_us(two, *ops)
    points, again = (measured(two, "--ops", ",".join(ops)) for _ in range(2))
    # The iterations go back to back, so the bucket of the link was full once: before the first.
    after_idle = SIZE * ITERATIONS / (SIZE * ITERATIONS - faults.BURST)
    assert 0.92 * goodput <= points["all_reduce"]["busbw_gb_s"] <= 1.01 * goodput * after_idle
    for op in ops:
        mean_us, spread_us = loop[op]
        assert points[op]["wrong"] == 0
        assert points[op]["time_us"]["mean"] == pytest.approx(mean_us, abs=spread_us + 0.05 * mean_us)
        assert_agree(points[op], again[op])


def assert_agree(one: dict[str, Any], other: dict[str, Any]) -> None:
    """Two runs agree within the intervals that they print."""
    assert one["busbw_low_gb_s"] <= one["busbw_gb_s"] <= one["busbw_high_gb_s"]
    assert one["busbw_low_gb_s"] <= other["busbw_high_gb_s"]
    assert other["busbw_low_gb_s"] <= one["busbw_high_gb_s"]
