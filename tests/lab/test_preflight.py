"""preflight on real nodes: a healthy cluster, and one fault at a time."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.further import mostly_further
from tests.lab import faults
from tests.lab.launched import PORT, Told, run, start, told
from tests.lab.nodes import PYTHON, Lab

pytestmark = [pytest.mark.lab, pytest.mark.slow]
LabOf = Callable[..., Lab]

# What ends early does so whenever the wait for all nodes would end: here so late that no load makes up for it.
PATIENT = ("--join-timeout", "100", "--timeout", "150")
LONG_BEFORE_S = 60.0

BARE = "import torch.distributed as d; d.init_process_group('gloo'); d.barrier(); d.destroy_process_group()"


def bare_seconds(lab: Lab) -> float:
    """How long the slowest of the nodes takes for the least that any job does: a gloo group and a barrier."""
    ended = lab.run_all(
        {node: [PYTHON, "-c", BARE] for node in lab.nodes},
        {
            "MASTER_ADDR": lab.nodes[0].address,
            "MASTER_PORT": str(PORT),
            "WORLD_SIZE": str(len(lab.nodes)),
            "GLOO_SOCKET_IFNAME": "eth0",
        },
        env_by_node={node: {"RANK": str(node.rank)} for node in lab.nodes},
        timeout_s=120,
        fresh=True,
    )
    assert all(one.returncode == 0 for one in ended.values()), [str(one) for one in ended.values()]
    return max(one.seconds for one in ended.values())


def only_first_prints(outcomes: dict[str, Told]) -> bool:
    return bool(outcomes["node1"].finished.stdout) and not any(
        one.finished.stdout for name, one in outcomes.items() if name != "node1"
    )


@pytest.mark.alone
def test_four_healthy_nodes_pass_fast_and_leave_nothing_behind(lab: LabOf) -> None:
    four = lab(4)
    before = bare_seconds(four)
    outcomes = run(four, "preflight", fresh=True)
    bare = min(
        before, bare_seconds(four)
    )  # one on each side of it, so that load that lasts has its part in all
    assert [one.code for one in outcomes.values()] == [0] * 4, str(outcomes["node1"].finished)
    assert outcomes["node1"].slugs == set(), str(outcomes["node1"].finished)
    assert outcomes["node1"].last_line.startswith("exit 0")
    assert only_first_prints(outcomes)
    report = outcomes["node1"].report
    assert report is not None
    assert {node["status"] for node in report["nodes"]} == {"reported"}
    reached = [one for one in report["probes"] if one["kind"] == "tcp" and one["outcome"] == "ok"]
    assert len([one for one in reached if one["listener"] == "ncclcheck"]) == 12
    assert {one["interface"] for one in report["nccl"]} == {"eth0"}
    assert all(one.report == report for one in outcomes.values())
    assert four.leftovers() == ()
    slowest = max(one.finished.seconds for one in outcomes.values())
    assert slowest <= 2.5 * bare, f"{slowest:.1f} s, bare group {bare:.1f} s"


@pytest.mark.alone
def test_a_filtered_master_port_is_called_on_every_node_within_15_s(lab: LabOf) -> None:
    four = lab(4)
    faults.drop(four["node1"], PORT)
    outcomes = run(four, "preflight", fresh=True)
    for name, one in outcomes.items():
        assert one.code == 1, str(one.finished)
        assert one.finished.seconds <= 15.0, (name, one.finished.seconds)
        assert one.report is not None
        assert one.last_line.startswith("exit 1")
    for name in ("node2", "node3", "node4"):
        finding = outcomes[name].finding("master-filtered")
        assert finding["hosts"] == [name]
        assert "10.78.0.1" in str(finding)
    named = {host for one in outcomes["node1"].findings("master-filtered") for host in one["hosts"]}
    assert {"node2", "node3", "node4"} <= named


@pytest.mark.parametrize("protocol", [pytest.param("tcp", marks=pytest.mark.further), "all"])
def test_a_node_whose_own_firewall_drops_the_answers_is_named_and_not_node_0(
    lab: LabOf, protocol: str
) -> None:
    three = lab(3)
    faults.drop(three["node3"], source=three["node1"], protocol=protocol)
    outcomes = run(three, "preflight", "--join-timeout", "15")
    finding = outcomes["node1"].finding("master-filtered")
    assert finding["hosts"] == ["node3"], str(outcomes["node1"].finished)
    assert "a firewall on node3, or on the path to it, drops the answers" in finding["summary"]
    assert any("# on node3" in command for fix in finding["fixes"] for command in fix["commands"])
    own = outcomes["node3"].finding("master-filtered")["summary"]
    assert ("drops the answers" if protocol == "tcp" else "or the answers to them on this node") in own


def test_a_filtered_port_on_the_way_of_one_node_is_that_nodes(lab: LabOf) -> None:
    three = lab(3)
    faults.drop(three["node1"], PORT, source=three["node3"])
    outcomes = run(three, "preflight", *PATIENT)
    assert outcomes["node3"].finding("master-filtered")["hosts"] == ["node3"]
    assert outcomes["node1"].finding("master-filtered")["hosts"] == ["node3"]
    assert outcomes["node2"].code == outcomes["node1"].code == 1
    assert max(one.finished.seconds for one in outcomes.values()) <= LONG_BEFORE_S


@pytest.mark.parametrize("answer", ["tcp-reset", "icmp-port-unreachable"])
def test_a_rejected_master_port_is_told_from_a_late_node(lab: LabOf, answer: faults.RejectWith) -> None:
    two = lab(2)
    faults.reject(two["node1"], PORT, answer)
    outcomes = run(two, "preflight", *PATIENT)
    finding = outcomes["node2"].finding("master-refused")
    assert finding["hosts"] == ["node2"]
    assert outcomes["node2"].code == outcomes["node1"].code == 1
    assert max(one.finished.seconds for one in outcomes.values()) <= LONG_BEFORE_S


def test_an_administratively_prohibited_port_is_no_route(lab: LabOf) -> None:
    two = lab(2)
    faults.reject(two["node1"], PORT, "icmp-host-prohibited")
    outcomes = run(two, "preflight", *PATIENT)
    assert outcomes["node2"].finding("master-no-route")["hosts"] == ["node2"]
    assert max(one.finished.seconds for one in outcomes.values()) <= LONG_BEFORE_S


@pytest.mark.parametrize("mode", mostly_further(["silent", "tcpstore", "banner", "http"], 2))
def test_a_foreign_program_on_the_master_port(lab: LabOf, mode: faults.HoldMode) -> None:
    two = lab(2)
    with faults.hold_port(two["node1"], PORT, mode) as holder:
        outcomes = run(two, "preflight", *PATIENT)
    finding = outcomes["node1"].finding("master-port-in-use")
    assert finding["hosts"] == ["node1"]
    assert f"pid {holder.pid}" in str(finding)
    assert outcomes["node2"].finding("master-foreign")["hosts"] == ["node2"]
    assert outcomes["node1"].code == outcomes["node2"].code == 1
    assert max(one.finished.seconds for one in outcomes.values()) <= LONG_BEFORE_S


def test_a_master_name_that_does_not_resolve(lab: LabOf) -> None:
    two = lab(2)
    outcomes = run(two, "preflight", *PATIENT, master="no-such-master")
    for name, one in outcomes.items():
        assert one.code == 1
        assert name in one.finding("master-unresolvable")["hosts"]
        assert one.finished.seconds <= LONG_BEFORE_S


def test_localhost_as_master_is_called_before_anyone_waits_long(lab: LabOf) -> None:
    two = lab(2)
    outcomes = run(two, "preflight", *PATIENT, master="localhost")
    for name, one in outcomes.items():
        assert name in one.finding("master-loopback")["hosts"], str(one.finished)
        assert one.finished.seconds <= LONG_BEFORE_S
    assert outcomes["node2"].code == 1


@pytest.mark.further
def test_a_master_name_that_is_another_nodes(lab: LabOf) -> None:
    three = lab(3)
    outcomes = run(three, "preflight", "--join-timeout", "20", master="node2")
    # node 0 hears of the owner by datagram, and so can name it
    found = outcomes["node1"].finding("master-not-first-node")
    assert found["hosts"] == ["node2"]
    assert "is an address of node2, which is node rank 1" in found["summary"]
    assert outcomes["node2"].finding("master-not-first-node")["hosts"] == ["node2"]
    assert outcomes["node3"].finding("master-refused")["hosts"] == ["node3"]
    assert {one.code for one in outcomes.values()} == {1}


def test_a_missing_node_is_named_at_the_join_deadline_and_nothing_passed_for_it(lab: LabOf) -> None:
    four = lab(4)
    whole_s = max(one.finished.seconds for one in run(four, "preflight").values())
    join_s = round(
        6 + whole_s
    )  # about 10 s where nothing else runs; a node starts as late as this machine lets it
    outcomes = run(four, "preflight", "--join-timeout", str(join_s), nodes=four.nodes[:3])
    for one in outcomes.values():
        assert one.code == 3, str(one.finished)
        assert one.finished.seconds <= join_s + 1.5 * whole_s + 2, whole_s
    finding = outcomes["node1"].finding("node-silent")
    assert finding["hosts"] == ["node-rank-3"]
    assert outcomes["node1"].report is not None
    silent = [node for node in outcomes["node1"].report["nodes"] if node["status"] == "silent"]
    assert [node["node_rank"] for node in silent] == [3]


def test_a_duplicate_rank_names_both_hosts(lab: LabOf) -> None:
    three = lab(3)
    outcomes = run(three, "preflight", *PATIENT, own_words={three["node3"]: ["--node-rank", "1"]})
    finding = outcomes["node1"].finding("rank-duplicate")
    assert {"node2", "node3"} <= set(finding["hosts"])
    assert {one.code for one in outcomes.values()} == {1}
    assert max(one.finished.seconds for one in outcomes.values()) <= LONG_BEFORE_S


def test_a_different_number_of_nodes_is_named_with_its_host(lab: LabOf) -> None:
    three = lab(3)
    outcomes = run(three, "preflight", own_words={three["node3"]: ["--nnodes", "5"]})
    finding = outcomes["node1"].finding("world-size-mismatch")
    assert finding["hosts"] == ["node3"]
    assert {one.code for one in outcomes.values()} == {1}


@pytest.mark.further
def test_ephemeral_ports_dropped_in_one_direction_between_one_pair(lab: LabOf) -> None:
    four = lab(4)
    low, high = faults.ephemeral_ports(four["node3"])
    faults.drop(four["node3"], (low, high), source=four["node2"], syn_only=True)
    outcomes = run(four, "preflight")
    (finding,) = outcomes["node1"].findings("peer-one-way")
    assert set(finding["hosts"]) == {"node2", "node3"}
    assert "node2" in finding["summary"]
    assert "node3" in finding["summary"]
    errors = {one["slug"] for one in outcomes["node1"].report["findings"] if one["severity"] == "error"}  # type: ignore[index]
    assert errors == {"peer-one-way"}
    assert {one.code for one in outcomes.values()} == {1}


def test_all_ephemeral_ports_of_one_node_dropped_is_one_finding_about_that_node(lab: LabOf) -> None:
    four = lab(4)
    faults.drop(four["node4"], faults.ephemeral_ports(four["node4"]), syn_only=True)
    outcomes = run(four, "preflight")
    report = outcomes["node1"].report
    assert report is not None
    errors = [one for one in report["findings"] if one["severity"] == "error"]
    assert [one["hosts"] for one in errors] == [["node4"]]
    assert outcomes["node1"].code == 1


def test_an_mtu_black_hole_is_proven(lab: LabOf) -> None:
    two = lab(2)
    for node in two.nodes:
        faults.set_mtu(node, 9000, switch_mtu=1500)
    outcomes = run(two, "preflight")
    assert set(outcomes["node1"].finding("mtu-blackhole")["hosts"]) == {"node1", "node2"}
    assert outcomes["node1"].code == 1


def test_the_same_docker_address_everywhere_is_seen_and_harms_nobody_while_unused(lab: LabOf) -> None:
    two = lab(2, docker=True)
    for node in two.nodes:
        node.add_bridge("br-user", "172.30.0.1/16")
    outcomes = run(two, "preflight")
    assert outcomes["node1"].code == 0, str(outcomes["node1"].finished)
    finding = outcomes["node1"].finding("address-duplicate")
    assert finding["severity"] == "info"
    assert "172.30.0.1" in str(finding)


def test_a_chosen_interface_with_the_same_address_everywhere_is_an_error_with_proven_advice(
    lab: LabOf,
) -> None:
    two = lab(2)
    for node in two.nodes:
        node.ip("link set eth0 down", "link set eth0 name wan0", "link set wan0 up")
        node.add_bridge("ibs0", "172.30.0.1/16")
    outcomes = run(two, "preflight")
    assert outcomes["node1"].finding("address-duplicate")["severity"] == "error"
    assert outcomes["node1"].code == 1
    assert outcomes["node1"].report is not None
    advised = {one["name"]: one["value"] for one in outcomes["node1"].report["advice"]["env"]}
    assert advised["NCCL_SOCKET_IFNAME"].lstrip("=") == "wan0"


def test_host_name_on_127_0_1_1_is_a_finding_and_gloo_gets_an_interface(lab: LabOf) -> None:
    two = lab(2)
    for node in two.nodes:
        faults.loopback_name(node)
    outcomes = run(two, "preflight")
    assert set(outcomes["node1"].finding("hostname-loopback")["hosts"]) == {"node1", "node2"}
    assert outcomes["node1"].report is not None
    advised = {one["name"]: one["value"] for one in outcomes["node1"].report["advice"]["env"]}
    assert advised["GLOO_SOCKET_IFNAME"] == "eth0"
    # There is no GPU here, so Gloo carries the job, and the job fails.
    assert outcomes["node1"].finding("hostname-loopback")["severity"] == "error"
    assert outcomes["node1"].code == 1
    told = run(two, "preflight", env={"GLOO_SOCKET_IFNAME": "eth0"})
    assert told["node1"].code == 0, str(told["node1"].finished)


@pytest.mark.parametrize(
    ("value", "slug"), [("nothere", "ifname-no-match"), ("^docker0", "ifname-excludes-into-loopback")]
)
def test_interface_settings_that_fail_are_called_and_mended(lab: LabOf, value: str, slug: str) -> None:
    two = lab(2, docker=True)
    outcomes = run(two, "preflight", env={"NCCL_SOCKET_IFNAME": value})
    finding = outcomes["node1"].finding(slug)
    assert set(finding["hosts"]) == {"node1", "node2"}
    assert outcomes["node1"].code == 1
    report = outcomes["node1"].report
    assert report is not None
    advised = {one["name"]: one for one in report["advice"]["env"]}
    assert advised["NCCL_SOCKET_IFNAME"]["value"] in (None, "=eth0", "eth0")
    if any(one["source"] == "asked" for one in report["nccl"]):
        assert advised["NCCL_SOCKET_IFNAME"]["proof"] == "asked"


def test_differing_code_and_environment_name_the_odd_node(lab: LabOf) -> None:
    three = lab(3)
    for node in three.nodes:
        (node.folder / "home" / "train.py").write_text("print(1)\n" if node.rank != 1 else "print(2)\n")
    outcomes = run(
        three,
        "preflight",
        "--code",
        "train.py",
        env={"NCCL_ALGO": "Ring"},
        env_by_node={three["node3"]: {"NCCL_ALGO": "Tree"}},
    )
    assert outcomes["node1"].finding("code-differs")["hosts"] == ["node2"]
    assert outcomes["node1"].finding("env-differs")["hosts"] == ["node3"]
    assert outcomes["node1"].code == 1


def test_ctrl_c_gives_130_and_a_partial_report(lab: LabOf) -> None:
    two = lab(2)
    running = start(two, "preflight", nodes=two.nodes[:1])
    running["node1"].wait_for("waiting for node rank 1", 90)
    running["node1"].signal(signal.SIGINT)
    outcomes = told(two, running, 10)
    assert outcomes["node1"].code == 130
    assert outcomes["node1"].report is not None
    assert outcomes["node1"].report["nodes"][0]["host"] == "node1"
    assert outcomes["node1"].last_line.startswith("exit 130")
    assert two.leftovers() == ()


def test_node_0_killed_in_the_middle_is_called_by_the_others(lab: LabOf) -> None:
    three = lab(3)
    running = start(three, "preflight", nodes=three.nodes[:2])
    running["node1"].wait_for("waiting for node rank 2", 90)
    killed = time.monotonic()
    running["node1"].signal(signal.SIGKILL, group=True)
    outcomes = told(three, {"node2": running["node2"]}, 60)
    assert time.monotonic() - killed <= 15
    assert outcomes["node2"].code in (1, 3)
    assert outcomes["node2"].finding("node-silent")["hosts"]
    assert three.leftovers() == ()


@pytest.mark.further
def test_node_0_stopped_in_the_middle_is_called_by_the_others(lab: LabOf) -> None:
    three = lab(3)
    running = start(three, "preflight", nodes=three.nodes[:2])
    running["node1"].wait_for("waiting for node rank 2", 90)
    stopped = time.monotonic()
    running["node1"].signal(signal.SIGSTOP, group=True)
    outcomes = told(three, {"node2": running["node2"]}, 60)
    assert time.monotonic() - stopped <= 20
    assert outcomes["node2"].code in (1, 3)
    running["node1"].signal(signal.SIGKILL, group=True)


@pytest.mark.further
def test_a_rule_that_drops_every_packet_in_one_direction_is_one_way_too(lab: LabOf) -> None:
    """Without connection tracking the answers to calls in the open direction vanish as well."""
    three = lab(3)
    faults.drop(three["node3"], faults.ephemeral_ports(three["node3"]), source=three["node2"])
    outcomes = run(three, "preflight")
    (finding,) = outcomes["node1"].findings("peer-one-way")
    assert set(finding["hosts"]) == {"node2", "node3"}
    assert finding["summary"].startswith("node2 cannot connect to node3")
    assert outcomes["node1"].findings("peer-filtered") == []


def test_an_mtu_black_hole_that_lets_segmented_blocks_through_is_proven(lab: LabOf) -> None:
    two = lab(2)
    for node in two.nodes:
        two.switch.ip(f"link set eth0-{node.number} mtu 1500")
        node.ip("link set eth0 mtu 9000")
    outcomes = run(two, "preflight")
    assert set(outcomes["node1"].finding("mtu-blackhole")["hosts"]) == {"node1", "node2"}
    assert outcomes["node1"].code == 1


@pytest.mark.further
def test_another_nccl_library_on_one_node_is_named_with_both_versions(lab: LabOf) -> None:
    libraries = os.environ.get("NCCLCHECK_TEST_NCCL_LIBRARIES", "").split(":")
    if len(libraries) <= 1:
        pytest.skip("needs two NCCL libraries in NCCLCHECK_TEST_NCCL_LIBRARIES")
    three = lab(3)
    older = {"LD_LIBRARY_PATH": str(Path(libraries[0]).parent)}
    outcomes = run(three, "preflight", env_by_node={three["node2"]: older})
    finding = outcomes["node1"].finding("nccl-differs")
    assert finding["hosts"] == ["node2"]
    assert {one.code for one in outcomes.values()} == {1}
