"""Nodes that are killed or stopped in the middle of a run: these are named, and what the others had done by then."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress

import pytest

from tests.lab.launched import Told, start, told
from tests.lab.nodes import Lab, Node
from tests.lab.test_bench_on_nodes import LONG, measuring
from tests.waiting import until

pytestmark = [pytest.mark.lab, pytest.mark.slow]
LabOf = Callable[..., Lab]
HELPER = "ncclcheck.exchange.store.shared_folder_child"  # touches the folder of --meet-in for its node


def signal_all(node: Node, number: signal.Signals) -> None:
    """Send the signal to every process of the node."""
    for pid in node.processes():
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def accused(outcome: Told) -> set[str]:
    """The hosts of all errors."""
    assert outcome.report is not None, str(outcome.finished)
    errors = [finding for finding in outcome.report["findings"] if finding["severity"] == "error"]
    return {host for finding in errors for host in finding["hosts"]}


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_two_of_three_nodes_are_lost_and_node_0_is_not_accused(lab: LabOf, number: signal.Signals) -> None:
    three = lab(3)
    running = start(three, *LONG)
    measuring(three, running)
    for name in ("node2", "node3"):
        signal_all(three[name], number)
    outcome = told(three, {"node1": running["node1"]}, 90)["node1"]
    assert accused(outcome) == {"node2", "node3"}
    assert all("kernel answers" in finding["summary"] for finding in outcome.findings("bench-hang"))
    assert outcome.code == 4


@pytest.mark.further
def test_node_0_whose_cable_is_pulled_is_named_and_not_the_others(lab: LabOf) -> None:
    three = lab(3)
    running = start(three, *LONG)
    measuring(three, running)
    three.switch.ip("link set eth0-1 down")
    outcome = told(three, {"node1": running["node1"]}, 90)["node1"]
    assert accused(outcome) == {"node1"}
    assert "its own network" in outcome.finding("bench-hang")["summary"]


@pytest.mark.parametrize("meets", ["by TCP", "in a folder"])
def test_nodes_that_lose_node_0_say_whom_they_lost_and_in_which_phase(lab: LabOf, meets: str) -> None:
    three = lab(3)
    folder = three.folder / "shared"
    folder.mkdir()
    running = start(three, *LONG, *(("--meet-in", str(folder)) if meets == "in a folder" else ()))
    measuring(three, running)
    signal_all(three["node1"], signal.SIGKILL)
    outcomes = told(three, {name: running[name] for name in ("node2", "node3")}, 90)
    for outcome in outcomes.values():
        assert outcome.last_line == "exit 3: node 0 (node1) was lost during the benchmark"
        assert outcome.finding("node-silent")["hosts"] == ["node1"]
        assert "did not meet" not in outcome.finished.stdout
        assert "no benchmark was run" not in outcome.finished.stdout
        assert accused(outcome) == set()


def test_node_0_that_hangs_when_the_others_come_to_its_folder_is_named_and_no_stranger(lab: LabOf) -> None:
    three = lab(3)
    folder = three.folder / "shared"
    folder.mkdir()
    words = ("preflight", "--timeout", "60", "--join-timeout", "20", "--meet-in", str(folder))
    start(three, *words, nodes=three.nodes[:1])
    until(lambda: any(":29500" in line for line in three["node1"].listeners()), "node 0 listens", 30)
    signal_all(three["node1"], signal.SIGSTOP)
    for outcome in told(three, start(three, *words, nodes=three.nodes[1:]), 90).values():
        assert outcome.code == 3, str(outcome.finished)
        assert accused(outcome) == set()
        for slug in ("node-silent", "meeting-place"):
            assert outcome.finding(slug)["hosts"] == ["node1"]


def test_a_folder_that_hangs_on_node_0_in_the_middle_accuses_no_other_node(lab: LabOf) -> None:
    three = lab(3)
    folder = three.folder / "shared"
    folder.mkdir()
    running = start(three, "matrix", "--size", "64K", "--timeout", "60", "--meet-in", str(folder))
    running["node1"].wait_for("starting what measures", 60)
    (helper,) = [pid for pid, line in three["node1"].processes().items() if HELPER in line]
    os.kill(helper, signal.SIGSTOP)
    outcomes = told(three, running, 90)
    assert accused(outcomes["node1"]) == {"node1"}
    assert outcomes["node1"].finding("meeting-place")["hosts"] == ["node1"]
    assert not outcomes["node1"].findings("row-slow") + outcomes["node1"].findings("node-silent")
    for name in ("node2", "node3"):
        assert accused(outcomes[name]) == set()
        assert outcomes[name].finding("node-silent")["hosts"] == ["node1"]


@pytest.mark.parametrize("command", ["preflight", pytest.param("bench", marks=pytest.mark.further)])
def test_a_node_whose_own_folder_hangs_says_that_and_does_not_accuse_node_0(lab: LabOf, command: str) -> None:
    three = lab(3)
    folder = three.folder / "shared"
    folder.mkdir()
    words = LONG if command == "bench" else ("preflight", "--timeout", "60")
    running = start(three, *words, "--meet-in", str(folder))
    if command == "bench":
        measuring(three, running)
    else:
        running["node1"].wait_for("nodes reported", 60)
    (helper,) = [pid for pid, line in three["node2"].processes().items() if HELPER in line]
    os.kill(helper, signal.SIGSTOP)
    outcomes = told(three, running, 90)
    second = outcomes["node2"]
    assert second.code == 1, str(second.finished)
    assert second.finding("meeting-place")["hosts"] == ["node2"]
    assert "its mount hangs" in second.finding("meeting-place")["summary"]
    assert not second.findings("node-silent")
    assert "did not meet" not in second.finished.stdout
    for name in ("node1", "node3"):
        assert accused(outcomes[name]) <= {"node2"}


@pytest.mark.further
def test_a_helper_that_is_killed_leaves_nothing_and_the_folder_is_not_blamed(lab: LabOf) -> None:
    three = lab(3)
    folder = three.folder / "shared"
    folder.mkdir()
    words = ("preflight", "--timeout", "60", "--join-timeout", "20", "--meet-in", str(folder))
    running = start(three, *words, nodes=three.nodes[2:])
    until(lambda: list(folder.iterdir()), "a mark of node3 in the folder", 30)
    (helper,) = [pid for pid, line in three["node3"].processes().items() if HELPER in line]
    os.kill(helper, signal.SIGKILL)
    running |= start(three, *words, nodes=three.nodes[:2])
    outcomes = told(three, running, 90)
    finding = outcomes["node3"].finding("meeting-place")
    assert finding["hosts"] == ["node3"]
    assert "was killed by SIGKILL" in finding["summary"]
    assert all(accused(outcome) <= {"node3"} for outcome in outcomes.values())
    assert list(folder.iterdir()) == []
