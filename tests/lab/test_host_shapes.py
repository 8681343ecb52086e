"""Nodes of other shapes than the lab's: many interfaces, several subnets, long names, ten thousand files of code."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lab.launched import run
from tests.lab.namespaces import call, inside
from tests.lab.nodes import Lab

pytestmark = [pytest.mark.lab, pytest.mark.slow]
LabOf = Callable[..., Lab]


def test_a_host_name_of_64_characters_is_called_which_gloo_cannot_read(lab: LabOf) -> None:
    two = lab(2)
    for node in two.nodes:
        node.name = f"node{node.number}-" + "x" * 58
    outcomes = run(two, "preflight")
    finding = outcomes[two.nodes[0].name].finding("hostname-long")
    assert (finding["severity"], finding["hosts"]) == ("error", [node.name for node in two.nodes])


def test_nccls_interface_is_found_among_those_of_200_pods(lab: LabOf) -> None:
    two = lab(2)
    for node in two.nodes:
        lines = []
        for pod in range(200):
            name = f"cali{pod:04x}"
            lines += [
                f"link add {name} type veth peer name p{pod}",
                f"addr add 10.50.{node.number}.{pod}/32 dev {name}",
            ]
            lines += [f"link set {name} up", f"link set p{pod} up"]
        node.ip(*lines)
    two.add_network("ens5", "10.79.0")
    outcomes = run(two, "preflight", env={"NCCL_SOCKET_IFNAME": "ens5"})
    first = outcomes["node1"]
    assert first.code == 0, str(first.finished)
    assert first.report is not None
    assert [choice["interface"] for choice in first.report["nccl"]] == ["ens5", "ens5"]
    assert first.outcome("link-flapped") == "passed"


def test_two_subnets_joined_by_a_router_are_no_error(lab: LabOf) -> None:
    four = lab(4)
    call(inside(four.switch.namespace, ["sysctl", "-q", "-w", "net.ipv4.ip_forward=1"]))
    four.switch.ip("addr add 10.99.0.254/24 dev br-eth0")
    for node in four.nodes[:2]:
        node.ip("route add default via 10.78.0.254")
    for node in four.nodes[2:]:
        node.address = f"10.99.0.{node.number}"
        node.ip(
            "addr flush dev eth0", f"addr add {node.address}/24 dev eth0", "route add default via 10.99.0.254"
        )
    for node in four.nodes:
        node.set_hosts({known.name: known.address for known in four.nodes})
    first = run(four, "preflight")["node1"]
    assert first.code == 0, str(first.finished)
    assert first.finding("interface-differs")["severity"] == "info"


@pytest.mark.further
def test_the_files_that_differ_are_named_also_of_many_and_with_names_that_are_no_text(lab: LabOf) -> None:
    three = lab(3)
    for node in three.nodes:
        code = node.folder / "home" / "code"
        for number in range(100):
            folder = code / f"package{number}"
            folder.mkdir(parents=True)
            for module in range(100):
                (folder / f"module{module}.py").write_text(f"x = {number + module}\n")
        Path(os.fsdecode(bytes(code) + b"/caf\xe9.py")).write_text(f"y = {node.rank == 2}\n")
    odd = three["node3"].folder / "home" / "code"
    (odd / "package7" / "module7.py").write_text("x = 0\n")
    (odd / "package8" / "module8.py").unlink()
    for number in range(12):
        (odd / f"extra{number:02}.py").write_text("")
    outcome = run(three, "preflight", "--code", "code")["node1"]
    finding = outcome.finding("code-differs")
    assert (outcome.code, finding["hosts"]) == (1, ["node3"]), str(outcome.finished)
    changed, missing, extra, *_ = (evidence["observed"] for evidence in finding["evidence"])
    assert changed == "2: caf\\xe9.py, package7/module7.py"
    assert missing == "1: package8/module8.py"
    assert extra == "12: " + ", ".join(f"extra{number:02}.py" for number in range(10)) + " and 2 more"
    assert "package7/module7.py" in finding["summary"]
