"""preflight where a name server of /etc/resolv.conf is silent and the next one answers: slow, no fault of a port."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tests.lab import name_server
from tests.lab.launched import run
from tests.lab.namespaces import ETC
from tests.lab.nodes import PYTHON, Lab

pytestmark = [pytest.mark.lab, pytest.mark.slow]
LabOf = Callable[..., Lab]
SILENT, ANSWERS = "10.78.0.77", "10.78.0.53"


@contextmanager
def names_by_server(lab: Lab, *slow: int) -> Iterator[None]:
    """No node has a hosts file; the nodes with these numbers ask a silent server first."""
    lab.switch.ip(f"addr add {SILENT}/24 dev br-eth0", f"addr add {ANSWERS}/24 dev br-eth0")
    lab.switch.run(["iptables", "-A", "INPUT", "-d", SILENT, "-p", "udp", "-j", "DROP"])
    for node in lab.nodes:
        node.set_hosts({})
        servers = [SILENT, ANSWERS] if node.number in slow else [ANSWERS]
        lines = "".join(f"nameserver {server}\n" for server in servers)
        (ETC / node.namespace / "resolv.conf").write_text(lines)
    names = [f"{node.name}={node.address}" for node in lab.nodes]
    with lab.switch.service([PYTHON, name_server.__file__, ANSWERS, *names]):
        yield


@pytest.mark.parametrize(
    "slow", [(1, 2, 3), pytest.param((1,), marks=pytest.mark.further), (2,)], ids=["all", "node-0", "node-1"]
)
def test_a_silent_name_server_is_named_and_nobody_is_accused(lab: LabOf, slow: tuple[int, ...]) -> None:
    three = lab(3)
    with names_by_server(three, *slow):
        outcomes = run(three, "preflight", master="node1")
    first = outcomes["node1"]
    assert [outcome.code for outcome in outcomes.values()] == [0, 0, 0], str(first.finished)
    found = first.finding("resolver-slow")
    assert found["hosts"] == [f"node{number}" for number in slow]
    assert SILENT in found["summary"]
    assert first.slugs == {"resolver-slow"}
    assert three.leftovers() == ()


def test_one_node_alone_is_told_too(lab: LabOf) -> None:
    one = lab(1)
    with names_by_server(one, 1):
        outcome = run(one, "preflight", master="node1")["node1"]
    assert outcome.code == 0
    assert outcome.finding("resolver-slow")["severity"] == "warning"


def test_where_no_server_answers_the_unknown_name_says_so(lab: LabOf) -> None:
    two = lab(2)
    with names_by_server(two, 2):
        (ETC / two["node2"].namespace / "resolv.conf").write_text(f"nameserver {SILENT}\n")
        first = run(two, "preflight", master="node1")["node1"]
    found = first.finding("master-unresolvable")
    assert found["hosts"] == ["node2"]
    assert SILENT in found["evidence"][0]["observed"]
