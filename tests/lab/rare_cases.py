"""Rare faults of nodes, addresses and settings, each with the verdict that was written down before it was first run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

from tests.lab import faults
from tests.lab.fault_cases import Expected, FaultCase
from tests.lab.launched import PORT
from tests.lab.namespaces import call, inside
from tests.lab.nodes import Lab, Node

OUTGOING_PROXY, INCOMING_PROXY = 15001, 15006


class RareCase(FaultCase, frozen=True):
    """A fault case with what only some of them need.

    `master`: makes MASTER_ADDR. `proxies`: a program that accepts and says nothing, by node and port. `fix`: words of
    the first fix of the first finding that is expected.
    """

    master: Callable[[Lab], str] = lambda _: ""
    ipv6: bool = False
    proxies: Mapping[str, int] = {}
    fix: str = ""


def _on(name: str, act: Callable[[Node], Any]) -> Callable[[Lab], None]:
    def build(lab: Lab) -> None:
        act(lab[name])

    return build


def _redirect(chain: str, way: str, port: int) -> Callable[[Node], None]:
    def build(node: Node) -> None:
        rule = f"-t nat -A {chain} -p tcp {way} eth0 -j REDIRECT --to-ports {port}"
        call(inside(node.namespace, ["iptables", "-w", *rule.split()]))

    return build


def _link_local(lab: Lab) -> str:
    words = call(
        inside(lab["node1"].namespace, ["ip", "-6", "-o", "address", "show", "dev", "eth0", "scope", "link"])
    )
    return words.split()[3].partition("/")[0] + "%eth0"


def _rename(node: Node) -> None:
    node.ip(
        "link set eth0 down", "link set eth0 name ens5", f"addr add fd78::{node.number}/64 dev ens5 nodad"
    )
    node.ip("link set ens5 up")


def _one_without_ipv6(lab: Lab) -> None:
    """All nodes have IPv6, node2 has IPv4 as well, which NCCL prefers."""
    for node in lab.nodes:
        if node.name != "node2":
            call(inside(node.namespace, ["ip", "-4", "address", "flush", "dev", "eth0"]))
        node.set_hosts({each.name: f"fd78::{each.number}" for each in lab.nodes})


def _code(lab: Lab, name: str, text: str) -> None:
    for node in lab.nodes:
        folder = node.folder / "home" / "code"
        folder.mkdir()
        (folder / "train.py").write_text("print(1)\n")
    (lab["node3"].folder / "home" / "code" / name).write_text(text)


def _code_and_a_blocked_pair(lab: Lab) -> None:
    _code(lab, "train.py", "print(1)\r\n")
    faults.drop(lab["node2"], faults.ephemeral_ports(lab["node2"]), source=lab["node1"], syn_only=True)


def hold_proxies(case: RareCase, lab: Lab, stack: ExitStack) -> None:
    """Start the programs that take the connections of a node."""
    for name, port in case.proxies.items():
        stack.enter_context(faults.hold_port(lab[name], port, "silent"))


_ALL = ("node1", "node2", "node3")
_CODE = ("--code", "code")
CASES = (
    RareCase("link-local-master", 3, lambda _: None, 0, master=_link_local, ipv6=True),
    RareCase(
        "link-local-master-and-another-interface", 3, _on("node3", _rename), 1,
        (Expected("master-unresolvable", ("node3",)),), quiet=("master-refused",), master=_link_local, ipv6=True,
    ),
    RareCase(
        "address-to-listen-on", 3, lambda _: None, 1, (Expected("master-loopback", _ALL, "0.0.0.0"),),  # noqa: S104
        master=lambda _: "0.0.0.0",  # noqa: S104
    ),
    RareCase(
        "brackets", 3, lambda _: None, 1, (Expected("master-unresolvable", _ALL),),
        master=lambda _: "[fd78::1]", ipv6=True, fix="without brackets: fd78::1",
    ),
    RareCase(
        "scheme", 3, lambda _: None, 1, (Expected("master-unresolvable", _ALL),),
        master=lambda _: "tcp://node1", fix="the name alone: node1",
    ),
    RareCase(
        "bridge-with-the-address-of-node-0", 3,
        _on("node2", lambda node: node.add_bridge("docker0", "10.78.0.1/24", state="no-carrier")), 1,
        (Expected("master-not-first-node", ("node2",), "the address of node 0, 10.78.0.1 (docker0)"),),
    ),
    RareCase(
        "bridge-over-the-address-of-node-5", 5,
        _on("node2", lambda node: node.add_bridge("docker0", "10.78.0.6/30")), 1,
        (Expected("peer-no-route", ("node2",), "node5 (10.78.0.5) through docker0"),), quiet=("peer-filtered",),
    ),
    RareCase(
        "one-prefers-a-family-that-others-lack", 3, _one_without_ipv6, 1,
        (Expected("interface-differs", ("node2",)), Expected("peer-one-way", ("node2",), "no IPv4 address")),
        quiet=("interface-virtual",), master=lambda _: "node1", ipv6=True, fix="NCCL_SOCKET_FAMILY",
    ),
    RareCase(
        "proxy-of-outgoing-connections", 3, _on("node3", _redirect("OUTPUT", "-o", OUTGOING_PROXY)), 1,
        (Expected("master-foreign", ("node3",), "a proxy takes the connections of node3"),),
        proxies={"node3": OUTGOING_PROXY},
    ),
    RareCase(
        "proxy-of-incoming-connections", 3, _on("node3", _redirect("PREROUTING", "-i", INCOMING_PROXY)), 1,
        (Expected("address-duplicate", ("node3",), "a proxy"),), quiet=("interface-virtual",),
        proxies={"node3": INCOMING_PROXY},
    ),
    RareCase(
        "only-the-master-port", 3,
        _on("node1", lambda node: faults.drop(node, (PORT + 1, 65535), syn_only=True)), 1,
        (Expected("peer-one-way", ("node1",)),), quiet=("interface-virtual",),
    ),
    RareCase(
        "infiniband-demanded-and-not-there", 3, lambda _: None, 1, (Expected("network-unusable", _ALL),),
        env={"NCCL_NET": "IB"},
    ),
    RareCase(
        "code-differs-and-a-pair-is-blocked", 3, _code_and_a_blocked_pair, 1,
        (Expected("code-differs", ("node3",)), Expected("peer-one-way", ("node1", "node2"))), words=_CODE,
    ),
    RareCase(
        "log-in-the-code", 3, lambda lab: _code(lab, "nohup.out", "epoch 1\n"), 0,
        (Expected("code-differs", ("node3",), "jobs wrote them"),), words=_CODE,
    ),
)  # fmt: skip
