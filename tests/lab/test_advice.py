"""What `run` advises on real nodes makes every node's real NCCL choose the right network, and is measured."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tests.lab import faults
from tests.lab.launched import Told, job_environment, report_file, run, start, told
from tests.lab.nodes import PYTHON, Lab, Node
from tests.lab.process import Running

pytestmark = [pytest.mark.lab, pytest.mark.slow]
alone = pytest.mark.alone
LabOf = Callable[..., Lab]
QUICK = ("--sizes", "64K", "--ops", "all_reduce", "--iters", "3")
# As a user does it, in the shell that starts the job.
APPLY = 'eval "$("$0" -m ncclcheck env --from "$1")" && exec "$0" -m ncclcheck predict --format json'


def rename(node: Node, new: str, old: str = "eth0") -> None:
    """The node's interface has another name."""
    node.ip(f"link set {old} down", f"link set {old} name {new}", f"link set {new} up")


def add_useless(lab: Lab) -> None:
    """Every node has an interface that NCCL prefers, with the same address everywhere: nobody reaches anybody."""
    for node in lab.nodes:
        node.add_bridge("ibs0", "172.30.0.1/16")


def document(one: Told) -> dict[str, Any]:
    assert one.report is not None, str(one.finished)
    return one.report


def applied(lab: Lab, env: Mapping[str, str] | None = None) -> dict[str, dict[str, Any]]:
    """What the real library of each node chooses in a shell that took the advice of the report there."""
    if not os.environ.get("NCCLCHECK_TEST_NCCL_LIBRARIES"):
        pytest.skip("needs an NCCL library in NCCLCHECK_TEST_NCCL_LIBRARIES")
    ended = lab.run_all(
        {node: ["sh", "-c", APPLY, PYTHON, str(report_file(node))] for node in lab.nodes},
        job_environment(env),
    )
    return {name: json.loads(finished.stdout)["nccl"][0] for name, finished in ended.items()}


def assert_all_choose(
    lab: Lab, places: Mapping[str, tuple[str, str]], env: Mapping[str, str] | None = None
) -> None:
    chosen = applied(lab, env)
    assert {one["source"] for one in chosen.values()} == {"asked"}
    assert {host: (one["interface"], one["address"]) for host, one in chosen.items()} == dict(places)


def assert_measured(report: Mapping[str, Any], verdict: str) -> None:
    """The advice is there, its proof is the comparison, and the main benchmark ran under it."""
    comparison = report["comparison"]
    assert comparison is not None, report["advice"]
    assert comparison["verdict"] == verdict, comparison
    assert len(comparison["advised"]["times_us"]) >= 6
    assert report["advice"]["env"]
    assert {one["proof"] for one in report["advice"]["env"] if one["name"].startswith("NCCL_")} == {
        "measured"
    }
    assert "the advised settings" in report["bench"]["transport"]
    assert len(report["bench"]["points"]) == 1


@alone
@pytest.mark.further
def test_an_isolated_interface_that_comes_first_hangs_as_it_is_and_is_called_in_time(lab: LabOf) -> None:
    two = lab(2)
    two.add_network("eth1", "10.79.0")
    for node in two.nodes:
        two.switch.ip(f"link set eth0-{node.number} nomaster")
        node.set_hosts({other.name: f"10.79.0.{other.number}" for other in two.nodes})
    began = time.monotonic()
    outcomes = run(two, "bench", "--as-is", "--no-preflight", *QUICK, master="10.79.0.1")
    assert time.monotonic() - began <= 30
    assert {outcome.code for outcome in outcomes.values()} == {4}, str(outcomes["node1"].finished)
    assert "again and again" in str(outcomes["node1"].finding("bench-hang"))
    assert "as it is, NCCL's own choice" in document(outcomes["node1"])["bench"]["transport"]
    outcomes = run(two, "run", *QUICK, master="10.79.0.1")
    assert_measured(document(outcomes["node1"]), "as-is failed")
    assert_all_choose(two, {node.name: ("eth1", f"10.79.0.{node.number}") for node in two.nodes})
    assert two.leftovers() == ()


@alone
@pytest.mark.further
def test_a_reachable_choice_that_is_ten_times_slower_than_another(lab: LabOf) -> None:
    two = lab(2)
    two.add_network("eth1", "10.79.0")
    for node in two.nodes:
        faults.shape(node, "100mbit")
        faults.shape(node, "1gbit", interface="eth1")
    outcomes = run(two, "run", *QUICK, "--save", "saved.json")
    report = document(outcomes["node1"])
    assert_measured(report, "faster")
    comparison = report["comparison"]
    assert 5.0 <= comparison["speedup_low"] <= comparison["speedup"] <= comparison["speedup_high"] <= 15.0
    assert comparison["rounds"] == len(comparison["as_is"]["times_us"]) >= 8
    assert comparison["as_is"]["busbw_gb_s"] == pytest.approx(0.0125, rel=0.15)
    evidence = next(one["evidence"] for one in report["advice"]["env"] if one["name"] == "NCCL_SOCKET_IFNAME")
    assert f"{comparison['speedup']:.2f} times faster, 95 % interval" in evidence
    assert_all_choose(two, {node.name: ("eth1", f"10.79.0.{node.number}") for node in two.nodes})
    replayed = two["node1"].run(
        [PYTHON, "-m", "ncclcheck", "run", "--from", "saved.json", "--format", "json"]
    )
    again = json.loads(replayed.stdout)
    for part in ("verdict", "findings", "advice", "comparison", "bench"):
        assert again[part] == report[part]


@pytest.mark.further
@alone
def test_advice_for_interface_names_that_differ_beside_a_useless_one(
    lab: LabOf,
) -> None:
    three = lab(3)
    names = {"node1": "wan0", "node2": "lan7", "node3": "up1"}
    for node in three.nodes:
        rename(node, names[node.name])
    add_useless(three)
    outcomes = run(three, "run", *QUICK)
    assert_measured(document(outcomes["node1"]), "as-is failed")
    failure = document(outcomes["node1"])["comparison"]["as_is"]["failure"]
    assert "on node" in failure
    assert "joining the group" in failure
    assert "as-is failed, advised works" in outcomes["node1"].finished.stdout
    assert_all_choose(three, {node.name: (names[node.name], node.address) for node in three.nodes})
    assert three.leftovers() == ()


@pytest.mark.further
@alone
def test_the_exclusion_that_guides_teach(lab: LabOf) -> None:
    two = lab(2, docker=True)
    guides = {"NCCL_SOCKET_IFNAME": "^docker0"}
    outcomes = run(two, "run", *QUICK, env=guides)
    report = document(outcomes["node1"])
    assert_measured(report, "as-is failed")
    assert {place[0] for place in report["comparison"]["as_is"]["places"].values()} == {"lo"}
    assert_all_choose(two, {node.name: ("eth0", node.address) for node in two.nodes}, guides)


@pytest.mark.further
def test_where_nothing_is_to_improve_nothing_is_advised_and_a_note_says_why(lab: LabOf) -> None:
    two = lab(2, docker=True)
    outcomes = run(two, "run", *QUICK)
    assert {outcome.code for outcome in outcomes.values()} == {0}, str(outcomes["node1"].finished)
    report = document(outcomes["node1"])
    assert report["advice"]["env"] == []
    assert any("nothing to set" in note for note in report["advice"]["notes"])
    assert report["comparison"] is None
    outcomes = run(two, "bench", "--advised", *QUICK)
    assert {outcome.code for outcome in outcomes.values()} == {0}
    assert "as it is: nothing is advised" in document(outcomes["node1"])["bench"]["transport"]


def comparing(lab: Lab, running: Mapping[str, Running]) -> None:
    """Return once every node has a worker of each set."""
    running["node1"].wait_for("comparing the environment as it is", 90)
    deadline = time.monotonic() + 60
    while not all(len(workers_of(node)) == 2 for node in lab.nodes):
        assert time.monotonic() < deadline, [str(one.stderr) for one in running.values()]
        time.sleep(0.05)


def workers_of(node: Node) -> list[int]:
    return [pid for pid, line in node.processes().items() if "ncclcheck.bench.worker" in line]


@pytest.mark.further
@alone
def test_ctrl_c_in_the_comparison_gives_130_and_a_partial_report_and_leaves_nothing(lab: LabOf) -> None:
    two = lab(2, docker=True)
    running = start(two, "run", *QUICK, env={"NCCL_SOCKET_IFNAME": "^docker0"})
    comparing(two, running)
    for one in running.values():
        one.signal(signal.SIGINT)
    pressed = time.monotonic()
    outcomes = told(two, running, 30)
    assert time.monotonic() - pressed <= 10
    assert {outcome.code for outcome in outcomes.values()} == {130}
    assert document(outcomes["node1"])["comparison"]["verdict"] == "not measured"
    assert two.leftovers() == ()


@pytest.mark.further
@alone
def test_killed_workers_of_both_sets_prove_nothing_and_the_benchmark_still_runs(lab: LabOf) -> None:
    two = lab(2, docker=True)
    running = start(two, "run", *QUICK, env={"NCCL_SOCKET_IFNAME": "^docker0"})
    comparing(two, running)
    for pid in workers_of(two["node2"]):
        os.kill(pid, signal.SIGKILL)
    report = document(told(two, running, 60)["node1"])
    assert report["comparison"]["verdict"] == "not measured"
    assert "SIGKILL" in report["comparison"]["advised"]["failure"]
    has_library = bool(os.environ.get("NCCLCHECK_TEST_NCCL_LIBRARIES"))
    assert {one["proof"] for one in report["advice"]["env"]} == {"asked" if has_library else "rule"}
    assert len(report["bench"]["points"]) == 1
    assert two.leftovers() == ()
