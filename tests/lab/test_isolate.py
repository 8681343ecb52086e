"""isolate on real nodes: a slow one, one that stops in the middle of a round, a blocked pair, and a sound cluster."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.lab import faults
from tests.lab.launched import Told, command, job_environment, read, run, start, told
from tests.lab.namespaces import call, inside
from tests.lab.nodes import Lab, Node
from tests.lab.ssh import Site, ssh_skip_reason
from tests.lab.topologies import shared_backplane

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.alone]
LabOf = Callable[..., Lab]


def shaped(lab: LabOf, nodes: int) -> Lab:
    built = lab(nodes)
    for node in built.nodes:
        faults.shape(node, "100mbit")
    return built


def shape_egress(node: Node, rate: str) -> None:
    """What the node sends is limited, what it receives is not."""
    bucket = ["root", "tbf", "rate", rate, "burst", "256kb", "latency", "50ms"]
    call(inside(node.namespace, ["tc", "qdisc", "replace", "dev", "eth0", *bucket]))


def isolation(outcome: Told) -> dict[str, Any]:
    assert outcome.report is not None, str(outcome.finished)
    assert outcome.report["isolation"] is not None, str(outcome.finished)
    found: dict[str, Any] = outcome.report["isolation"]
    return found


def test_a_node_that_sends_slowly_is_named_with_its_direction_and_nobody_else(lab: LabOf) -> None:
    six = shaped(lab, 6)
    shape_egress(six["node3"], "80mbit")
    outcomes = run(six, "isolate", "--seed", "1")
    first = outcomes["node1"]
    found = isolation(first)
    assert [(node["host"], node["verdict"], node["direction"]) for node in found["nodes"]] == [
        ("node3", "slow", "send")
    ], str(first.finished)
    assert found["links"] == found["groups"] == found["undecided"] == []
    assert len(found["rounds"]) <= 5
    assert found["nodes"][0]["false_name_chance"] <= 0.01
    assert {outcome.code for outcome in outcomes.values()} == {4}
    assert six.leftovers() == ()


@pytest.mark.further
def test_sound_nodes_are_not_named_and_an_odd_one_is_tested_too(lab: LabOf) -> None:
    three = shaped(lab, 3)
    outcomes = run(three, "isolate")
    found = isolation(outcomes["node1"])
    assert found["nodes"] == found["links"] == found["groups"] == [], str(outcomes["node1"].finished)
    assert found["coverage"] == {"pairs_tested": 3, "pairs": 3}
    assert {outcome.code for outcome in outcomes.values()} == {0}


@pytest.mark.further
@pytest.mark.parametrize("fault", ["stop", "kill", "drop"])
def test_a_node_that_hangs_in_a_round_is_named_and_costs_seconds(lab: LabOf, fault: str) -> None:
    four = shaped(lab, 4)
    bad, running = four["node3"], start(four, "isolate")
    words = inside(bad.namespace, ["ss", "-Htn", "state", "established", "src", "10.78.0.3"])
    deadline = time.monotonic() + 60
    while "round 1" not in running["node1"].stderr or len(call(words).splitlines()) < 3:
        assert time.monotonic() < deadline, running["node1"].stderr
        time.sleep(0.02)
    if fault == "drop":
        rule = ["iptables", "-w", "-A", "INPUT", "-i", "eth0", "-p", "tcp", "!", "--syn", "-j", "DROP"]
        call(inside(bad.namespace, rule))
    for pid in bad.processes() if fault != "drop" else ():
        os.kill(pid, signal.SIGSTOP if fault == "stop" else signal.SIGKILL)
    broken = time.monotonic()
    try:
        outcomes = told(four, {name: running[name] for name in ("node1", "node2", "node4")}, 60)
        took_s = time.monotonic() - broken
    finally:
        running["node3"].signal(signal.SIGKILL, group=True)
    found = isolation(outcomes["node1"])
    assert [(node["host"], node["verdict"]) for node in found["nodes"]] == [("node3", "hang")], found
    assert outcomes["node1"].code == 4, str(outcomes["node1"].finished)
    assert outcomes["node1"].outcome("interface-down") == "passed", "what it had told before stays known"
    assert "node3 did not report" not in outcomes["node1"].finished.stdout
    assert took_s <= 45, took_s


@pytest.mark.further
def test_a_node_that_is_paused_and_goes_on_stood_still_and_does_not_hang(lab: LabOf) -> None:
    four = shaped(lab, 4)
    running = start(four, "isolate")
    running["node1"].wait_for("round 1", 60)
    paused = four["node3"].processes()
    for pid in paused:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(12)  # what is measured
    for pid in paused:
        os.kill(pid, signal.SIGCONT)
    outcomes = told(four, running, 120)
    found = isolation(outcomes["node1"])
    assert found["nodes"] == found["links"] == found["groups"] == found["undecided"] == [], found
    assert outcomes["node1"].finding("node-stood-still")["hosts"] == ["node3"]
    assert {outcome.code for outcome in outcomes.values()} == {3}
    assert four.leftovers() == ()


def test_a_node_that_only_node_0_does_not_hear_is_cut_off_and_not_named(lab: LabOf) -> None:
    four = shaped(lab, 4)
    running = start(four, "isolate")
    running["node1"].wait_for("round 1", 60)
    faults.drop(four["node1"], source=four["node3"])
    outcome = told(four, {name: running[name] for name in ("node1", "node2", "node4")}, 90)["node1"]
    found = isolation(outcome)
    assert found["nodes"] == [], str(outcome.finished)
    assert {(link["from"], link["to"], link["verdict"]) for link in found["links"]} == {
        ("node1", "node3", "blocked"),
        ("node3", "node1", "blocked"),
    }
    assert outcome.findings("node-silent") == []
    assert "scontrol update" not in outcome.finished.stdout
    assert outcome.code == 4


@pytest.mark.further
def test_a_node_0_that_stands_still_in_a_round_names_nobody(lab: LabOf) -> None:
    four = shaped(lab, 4)
    running = start(four, "isolate")
    running["node1"].wait_for("round 1", 60)
    stopped = four["node1"].processes()
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(15)  # longer than the rounds wait for a node
    for pid in stopped:
        os.kill(pid, signal.SIGCONT)
    outcomes = told(four, running, 90)
    found = isolation(outcomes["node1"])
    assert found["nodes"] == [], found
    assert found["unheard"]["stood_still_s"] >= 10, found
    assert outcomes["node1"].code == 3, str(outcomes["node1"].finished)
    assert "scontrol update" not in outcomes["node1"].finished.stdout


@pytest.mark.further
def test_after_a_benchmark_that_found_something_pairs_tell_who_it_was(lab: LabOf) -> None:
    four = shaped(lab, 4)
    shape_egress(four["node3"], "50mbit")
    words = ("--ops", "all_reduce", "--sizes", "1M", "--iters", "5", "--backend", "gloo")
    outcomes = run(four, "bench", *words, "--isolate", "--min-busbw", "0.009")
    found = isolation(outcomes["node1"])
    assert [(node["host"], node["direction"]) for node in found["nodes"]] == [("node3", "send")], str(
        outcomes["node1"].finished
    )
    assert {outcome.code for outcome in outcomes.values()} == {4}
    assert {"bench-below-floor", "node-slow"} <= {
        finding["slug"] for finding in (outcomes["node1"].report or {})["findings"]
    }
    assert four.leftovers() == ()


@pytest.mark.further
def test_after_a_benchmark_that_found_nothing_no_pair_is_tested(lab: LabOf) -> None:
    two = shaped(lab, 2)
    words = ("--ops", "all_reduce", "--sizes", "64K", "--iters", "5", "--backend", "gloo")
    outcomes = run(two, "bench", *words, "--isolate")
    assert (outcomes["node1"].report or {})["isolation"] is None
    assert {outcome.code for outcome in outcomes.values()} == {0}


@pytest.mark.further
def test_of_two_nodes_the_slow_direction_is_named_and_neither_node(lab: LabOf) -> None:
    two = shaped(lab, 2)
    shape_egress(two["node2"], "60mbit")
    outcomes = run(two, "isolate")
    found = isolation(outcomes["node1"])
    assert found["nodes"] == found["undecided"] == [], str(outcomes["node1"].finished)
    assert found["links"] == [{"from": "node2", "to": "node1", "verdict": "slow", "detail": ""}]
    assert {outcome.code for outcome in outcomes.values()} == {4}
    assert "takes a third one to tell" in outcomes["node1"].finished.stdout


@pytest.mark.further
def test_a_network_that_carries_half_of_the_nodes_at_once_is_slow_from_all_of_them_on(lab: LabOf) -> None:
    six = shaped(lab, 6)
    with shared_backplane(six, "370mbit"):
        outcomes = run(six, "isolate", "--groups")
        found = isolation(outcomes["node1"])
        assert found["nodes"] == found["links"] == found["groups"] == [], str(outcomes["node1"].finished)
        assert found["only_from_nodes"] == 6, found
        assert "slow-at-scale" in outcomes["node1"].finished.stdout
        assert six.leftovers() == ()


@pytest.mark.further
@pytest.mark.skipif(ssh_skip_reason() is not None, reason=ssh_skip_reason() or "")
def test_over_ssh_the_slow_one_of_three_is_named_and_left_out_of_the_list(lab: LabOf) -> None:
    three = shaped(lab, 3)
    shape_egress(three["node2"], "60mbit")
    head = three["switch"]
    with Site(three) as site:
        words = command(head, "isolate", "--hosts", "node[1-3]", "--ssh", site.ssh, "--print", "hosts")
        outcome = read(head, head.start(words, job_environment()).wait(180))
    found = isolation(outcome)
    named = [(node["host"], node["verdict"], node["direction"]) for node in found["nodes"]]
    assert named == [("node2", "slow", "send")], str(outcome.finished)
    assert found["links"] == found["groups"] == found["undecided"] == []
    assert (outcome.code, outcome.finished.stdout) == (4, "node[1,3]\n")
    assert three.leftovers() == ()
