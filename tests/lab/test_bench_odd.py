"""The benchmark where something odd happens to it: the right host is named, or nobody, and it ends in time."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable

import pytest

from tests.lab.launched import run, start, told
from tests.lab.namespaces import call, inside
from tests.lab.nodes import Lab, Node
from tests.lab.test_bench_on_nodes import LONG, measuring

pytestmark = [pytest.mark.lab, pytest.mark.slow]
alone = pytest.mark.alone
LabOf = Callable[..., Lab]
SHORT = ("bench", "--no-preflight", "--ops", "all_reduce", "--sizes", "64K", "--iters", "10")


def cut(node: Node, other: Node) -> None:
    """Nothing passes between the workers of the two; the store's port stays open."""
    for here, there in ((node, other), (other, node)):
        for low, high in ((1024, 29499), (29501, 65535)):
            match = ["-s", there.address, "--sport", f"{low}:{high}", "--dport", "29501:65535"]
            call(inside(here.namespace, ["iptables", "-w", "-A", "INPUT", "-p", "tcp", *match, "-j", "DROP"]))


@alone
def test_a_pair_that_is_cut_in_mid_run_is_named_and_the_ranks_between_are_not(lab: LabOf) -> None:
    four = lab(4)
    running = start(four, *LONG)
    measuring(four, running)
    cut(four["node2"], four["node3"])
    began = time.monotonic()
    outcomes = told(four, running, 60)
    assert time.monotonic() - began <= 20
    finding = outcomes["node1"].finding("bench-hang")
    assert finding["hosts"] == ["node2", "node3"]
    assert "the network between them" in finding["summary"]
    assert {outcome.code for outcome in outcomes.values()} == {4}
    assert four.leftovers() == ()


@pytest.mark.further
@alone
def test_a_time_too_short_for_the_plan_is_no_pass(lab: LabOf) -> None:
    two = lab(2)
    running = start(two, *SHORT[:-1], "10000000", "--timeout", "16", fresh=True)
    outcomes = told(two, running, 30)
    assert {outcome.code for outcome in outcomes.values()} == {3}
    assert all(outcome.finished.seconds <= 16.5 for outcome in outcomes.values())
    assert "--timeout" in outcomes["node1"].last_line
    assert outcomes["node1"].outcome("bench-hang") == "unknown"
    assert two.leftovers() == ()


def test_a_plan_larger_than_the_memory_is_refused_before_it_starts(lab: LabOf) -> None:
    outcomes = run(lab(2), "bench", "--no-preflight", "--sizes", "1T", "--timeout", "60")
    assert {outcome.code for outcome in outcomes.values()} == {3}
    assert "the largest size that fits is" in outcomes["node1"].last_line


@pytest.mark.further
@alone
def test_an_interrupted_node_is_named_at_once(lab: LabOf) -> None:
    three = lab(3)
    running = start(three, *LONG)
    measuring(three, running)
    running["node3"].signal(signal.SIGINT)
    began = time.monotonic()
    outcomes = told(three, running, 40)
    assert time.monotonic() - began <= 6
    finding = outcomes["node1"].finding("bench-hang")
    assert finding["hosts"] == ["node3"]
    assert finding["severity"] == "warning"
    assert "ncclcheck was interrupted on node3" in finding["summary"]
    assert "the benchmark was not finished: ncclcheck was interrupted on node3" in str(
        outcomes["node1"].report
    )
    assert [outcomes[name].code for name in ("node1", "node2", "node3")] == [3, 3, 130]
