"""One network fault each, of every kind that a cluster has, and what node 0 has to say about it.

`scripts/fault_times` measures how long each takes to its verdict.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import TypeAlias

from msgspec import Struct

from tests.lab import faults
from tests.lab.launched import PORT
from tests.lab.namespaces import call, inside
from tests.lab.nodes import Lab, Node

Build: TypeAlias = Callable[[Lab, ExitStack], None]
NOBODY = "10.78.0.77"  # in the network of the nodes, and no machine has it
ELSEWHERE = "192.0.2.7"  # in no network of the nodes (RFC 5737)


class NetworkFault(Struct, frozen=True):
    """A fault and what must come of it.

    `slugs`: one of these is found by node 0, on `host` where one is named. `unknowable`: node 0 gets no sign of the
    node by any path, so it waits until the join deadline. `absent`: nodes that are never started.
    """

    name: str
    build: Build
    slugs: tuple[str, ...]
    host: str = ""
    nodes: int = 3
    master: str = ""
    words: tuple[str, ...] = ()
    env: dict[str, str] = {}
    absent: tuple[str, ...] = ()
    own_words: dict[str, tuple[str, ...]] = {}
    unknowable: bool = False


def _on(name: str, act: Callable[[Node], None]) -> Build:
    return lambda lab, _: act(lab[name])


def _names(name: str, address: str | None, *on: str) -> Build:
    """On these nodes (all, if none are named) `name` leads to `address`; None: to nothing."""

    def build(lab: Lab, _: ExitStack) -> None:
        for node in [lab[node_name] for node_name in on] or lab.nodes:
            if address is None:
                faults.forget_name(node, name)
            else:
                faults.wrong_name(node, name, address)

    return build


def _resolver_hangs(*on: str) -> Build:
    def build(lab: Lab, _: ExitStack) -> None:
        lab.switch.ip("addr add 10.78.0.53/24 dev br-eth0")
        faults.drop(lab.switch, protocol="udp")
        for node in [lab[node_name] for node_name in on] or lab.nodes:
            faults.forget_name(node, "node1")
            node.set_resolver("10.78.0.53")

    return build


def _switch_answers(how: str) -> Build:
    """On node3 the name of node 0 leads to a third machine, which drops or refuses."""

    def build(lab: Lab, stack: ExitStack) -> None:
        lab.switch.ip("addr add 10.78.0.200/24 dev br-eth0")
        faults.wrong_name(lab["node3"], "node1", "10.78.0.200")
        if how == "drops":
            faults.drop(lab.switch, PORT)
        elif how == "holds":
            stack.enter_context(faults.hold_port(lab.switch, PORT, "silent"))

    return build


def _rule(name: str, rule: str) -> Build:
    def build(lab: Lab, _: ExitStack) -> None:
        words = rule.format(**{node.name: node.address for node in lab.nodes}, port=PORT).split()
        call(inside(lab[name].namespace, ["iptables", "-w", "-A", *words]))

    return build


def _ip(name: str, *lines: str) -> Build:
    def build(lab: Lab, _: ExitStack) -> None:
        lab[name].ip(*lines)

    return build


def _switch_ip(*lines: str) -> Build:
    def build(lab: Lab, _: ExitStack) -> None:
        lab.switch.ip(*lines)

    return build


def _held(mode: faults.HoldMode) -> Build:
    def build(lab: Lab, stack: ExitStack) -> None:
        stack.enter_context(faults.hold_port(lab["node1"], PORT, mode))

    return build


def _pairs(*pairs: tuple[str, str], rejects: bool = False) -> Build:
    """The first of each pair cannot connect to the second."""

    def build(lab: Lab, _: ExitStack) -> None:
        for source, target in pairs:
            ports = faults.ephemeral_ports(lab[target])
            act = faults.reject if rejects else faults.drop
            act(lab[target], ports, source=lab[source], syn_only=True)

    return build


def _ephemeral(name: str) -> Build:
    return lambda lab, _: faults.drop(lab[name], faults.ephemeral_ports(lab[name]), syn_only=True)


def _nothing(_lab: Lab, _stack: ExitStack) -> None:
    """Nothing is done to the nodes: the fault is how they are started."""


def _black_hole(lab: Lab, _: ExitStack) -> None:
    for node in lab.nodes:
        faults.set_mtu(node, 9000, switch_mtu=1500)


def _same_bridge(lab: Lab, _: ExitStack) -> None:
    for node in lab.nodes:
        node.ip("link set eth0 down", "link set eth0 name wan0", "link set wan0 up")
        node.add_bridge("ibs0", "172.30.0.1/16")


def _moved(lab: Lab, _: ExitStack) -> None:
    lab["node3"].ip("addr flush dev eth0", "addr add 10.99.0.3/24 dev eth0")


def _spare_network(lab: Lab, _: ExitStack) -> None:
    lab.add_network("eth1", "10.79.0")
    faults.unplug(lab["node3"])


def _bad_neighbour(lab: Lab, _: ExitStack) -> None:
    lab["node3"].ip("neigh replace 10.78.0.1 lladdr 02:00:00:00:00:99 nud permanent dev eth0")


def _loses(share: float) -> Build:
    return _on("node3", lambda node: faults.lose(node, share))


def _drops(name: str, source: str = "", *, protocol: str = "tcp", port: int | None = None) -> Build:
    def build(lab: Lab, _: ExitStack) -> None:
        faults.drop(lab[name], port, source=lab[source] if source else None, protocol=protocol)

    return build


def _rejects(answer: faults.RejectWith, source: str = "") -> Build:
    def build(lab: Lab, _: ExitStack) -> None:
        faults.reject(lab["node1"], PORT, answer, source=lab[source] if source else None)

    return build


_FILTERED, _REFUSED, _NO_ROUTE = ("master-filtered",), ("master-refused",), ("master-no-route",)
_SILENT = ("node-silent",)
_UNRESOLVABLE = ("master-unresolvable",)
_REACH = ("peer-filtered", "peer-one-way")
NAMES = (
    NetworkFault(
        "name-unknown-on-one", _names("node1", None, "node3"), _UNRESOLVABLE, "node3", master="node1"
    ),
    NetworkFault("name-unknown-on-all", _nothing, _UNRESOLVABLE, master="no-such-master"),
    NetworkFault(
        "name-unknown-on-two", _names("node1", None, "node2", "node3"), _UNRESOLVABLE, master="node1"
    ),
    NetworkFault(
        "name-loopback-on-one",
        _names("node1", "127.0.1.1", "node3"),
        ("master-loopback",),
        "node3",
        master="node1",
    ),
    NetworkFault("name-loopback-on-all", _names("node1", "127.0.1.1"), ("master-loopback",), master="node1"),
    NetworkFault("localhost", _nothing, ("master-loopback",), master="localhost"),
    NetworkFault(
        "name-of-node-2-on-one", _names("node1", "10.78.0.2", "node3"), _REFUSED, "node3", master="node1"
    ),
    NetworkFault(
        "name-of-itself-on-one",
        _names("node1", "10.78.0.3", "node3"),
        ("master-not-first-node",),
        "node3",
        master="node1",
    ),
    NetworkFault(
        "name-of-nobody-on-one", _names("node1", NOBODY, "node3"), _NO_ROUTE, "node3", master="node1"
    ),
    NetworkFault(
        "name-elsewhere-on-one", _names("node1", ELSEWHERE, "node3"), _NO_ROUTE, "node3", master="node1"
    ),
    NetworkFault(
        "name-of-ipv6-on-one", _names("node1", "fd00::1", "node3"), _NO_ROUTE, "node3", master="node1"
    ),
    NetworkFault("name-of-node-2-on-all", _nothing, ("master-not-first-node",), master="node2"),
    NetworkFault(
        "name-of-nobody-on-all", _names("node1", NOBODY), ("master-not-first-node",), master="node1"
    ),
    NetworkFault("name-of-a-filtered-machine", _switch_answers("drops"), _FILTERED, "node3", master="node1"),
    NetworkFault("name-of-a-refusing-machine", _switch_answers("refuses"), _REFUSED, "node3", master="node1"),
    NetworkFault(
        "name-of-a-foreign-machine", _switch_answers("holds"), ("master-foreign",), "node3", master="node1"
    ),
    NetworkFault("resolver-hangs-on-one", _resolver_hangs("node3"), _UNRESOLVABLE, "node3", master="node1"),
    NetworkFault("resolver-hangs-on-all", _resolver_hangs(), _UNRESOLVABLE, master="node1"),
)
FIREWALLS = (
    NetworkFault("port-dropped", _drops("node1", port=PORT), _FILTERED),
    NetworkFault("port-dropped-for-one", _drops("node1", "node3", port=PORT), _FILTERED, "node3"),
    NetworkFault("tcp-dropped-for-one", _drops("node1", "node3"), _FILTERED, "node3"),
    NetworkFault("all-dropped-for-one", _drops("node1", "node3", protocol="all"), _FILTERED, "node3"),
    NetworkFault(
        "all-dropped-of-two", _drops("node1", "node2", protocol="all"), _SILENT, nodes=2, unknowable=True
    ),
    NetworkFault(
        "port-dropped-both-protocols", _rule("node1", "INPUT -i eth0 -j DROP"), _SILENT, unknowable=True
    ),
    NetworkFault("port-reset", _rejects("tcp-reset"), _REFUSED),
    NetworkFault("port-reset-for-one", _rejects("tcp-reset", "node3"), _REFUSED, "node3"),
    NetworkFault("port-unreachable-for-one", _rejects("icmp-port-unreachable", "node3"), _REFUSED, "node3"),
    NetworkFault("port-prohibited", _rejects("icmp-host-prohibited"), _NO_ROUTE),
    NetworkFault("port-prohibited-for-one", _rejects("icmp-host-prohibited", "node3"), _NO_ROUTE, "node3"),
    NetworkFault("answers-dropped", _drops("node3", "node1"), _FILTERED, "node3"),
    NetworkFault("answers-dropped-all", _drops("node3", "node1", protocol="all"), _FILTERED, "node3"),
    NetworkFault("own-input-dropped", _rule("node3", "INPUT -i eth0 -j DROP"), _FILTERED, "node3"),
    NetworkFault("answers-never-sent", _rule("node1", "OUTPUT -d {node3} -j DROP"), _FILTERED, "node3"),
    NetworkFault(
        "own-output-dropped", _rule("node3", "OUTPUT -p tcp --dport {port} -j DROP"), _FILTERED, "node3"
    ),
    NetworkFault("own-output-to-node-0", _rule("node3", "OUTPUT -d {node1} -j DROP"), _FILTERED, "node3"),
    NetworkFault("own-output-all", _rule("node3", "OUTPUT -o eth0 -j DROP"), _SILENT, unknowable=True),
    NetworkFault(
        "own-output-reset",
        _rule("node3", "OUTPUT -p tcp --dport {port} -j REJECT --reject-with tcp-reset"),
        _REFUSED,
        "node3",
    ),
    NetworkFault(
        "own-output-prohibited",
        _rule("node3", "OUTPUT -d {node1} -j REJECT --reject-with icmp-host-prohibited"),
        (*_NO_ROUTE, *_REFUSED, *_FILTERED),
        "node3",
    ),
)
LINKS = (
    NetworkFault("unplugged", _on("node3", faults.unplug), _SILENT, unknowable=True),
    NetworkFault("unplugged-beside-a-spare", _spare_network, (*_NO_ROUTE, *_FILTERED), "node3"),
    NetworkFault("interface-down", _ip("node3", "link set eth0 down"), _SILENT, unknowable=True),
    NetworkFault("another-vlan", _switch_ip("link set eth0-3 nomaster"), _SILENT, unknowable=True),
    NetworkFault("no-address", _ip("node3", "addr flush dev eth0"), _NO_ROUTE, "node3"),
    NetworkFault("wrong-subnet", _moved, _NO_ROUTE, "node3"),
    NetworkFault("route-unreachable", _ip("node3", "route add unreachable 10.78.0.1"), _NO_ROUTE, "node3"),
    NetworkFault(
        "route-prohibited", _ip("node3", "route add prohibit 10.78.0.1"), (*_NO_ROUTE, *_REFUSED), "node3"
    ),
    NetworkFault(
        "route-blackhole", _ip("node3", "route add blackhole 10.78.0.1"), (*_NO_ROUTE, *_REFUSED), "node3"
    ),
    NetworkFault("wrong-neighbour", _bad_neighbour, _FILTERED, "node3"),
    NetworkFault("node-0-unplugged", _on("node1", faults.unplug), _SILENT, unknowable=True),
    NetworkFault("mtu-black-hole", _black_hole, ("mtu-blackhole",)),
    NetworkFault("address-of-node-2", _ip("node3", "addr add 10.78.0.2/24 dev eth0"), ("address-duplicate",)),
    NetworkFault("same-bridge-address", _same_bridge, ("address-duplicate",)),
    NetworkFault(
        "slow-link", _on("node3", lambda node: faults.shape(node, "50mbit")), ("interface-slow",), "node3", 4
    ),
    NetworkFault("loses-2-percent", _loses(0.02), ("packet-loss",), "node3", 4),
    NetworkFault("loses-20-percent", _loses(0.2), ("packet-loss",), "node3", 4),
)
PEERS = (
    NetworkFault("one-direction", _pairs(("node2", "node3")), ("peer-one-way",)),
    NetworkFault("both-directions", _pairs(("node2", "node3"), ("node3", "node2")), _REACH),
    NetworkFault("ports-of-node-3", _ephemeral("node3"), _REACH, "node3"),
    NetworkFault("ports-of-node-1", _ephemeral("node1"), _REACH, "node1"),
    NetworkFault("pair-rejected", _pairs(("node2", "node3"), rejects=True), ("peer-refused", "peer-one-way")),
    NetworkFault("peer-dropped-all", _drops("node3", "node2", protocol="all"), _REACH),
    NetworkFault(
        "two-halves",
        _pairs(*[(a, b) for a in ("node3", "node4") for b in ("node1", "node2")]),
        _REACH,
        nodes=4,
    ),
)
PROGRAMS = (
    NetworkFault("port-held-silent", _held("silent"), ("master-port-in-use",), "node1"),
    NetworkFault("port-held-banner", _held("banner"), ("master-port-in-use",), "node1"),
    NetworkFault("port-held-http", _held("http"), ("master-port-in-use",), "node1"),
    NetworkFault("port-held-store", _held("tcpstore"), ("master-port-in-use",), "node1"),
    NetworkFault("port-held-full", _held("full"), ("master-port-in-use",), "node1"),
    NetworkFault("rank-twice", _nothing, ("rank-duplicate",), own_words={"node3": ("--node-rank", "1")}),
    NetworkFault(
        "another-number-of-nodes",
        _nothing,
        ("world-size-mismatch",),
        "node3",
        own_words={"node3": ("--nnodes", "5")},
    ),
    NetworkFault(
        "interface-not-there", _nothing, ("ifname-no-match",), env={"NCCL_SOCKET_IFNAME": "nothere"}
    ),
    NetworkFault(
        "host-name-loopback", _names("node3", "127.0.1.1", "node3"), ("hostname-loopback",), "node3"
    ),
    NetworkFault("never-starts", _nothing, _SILENT, absent=("node3",), unknowable=True),
)
FAULTS = (*NAMES, *FIREWALLS, *LINKS, *PEERS, *PROGRAMS)
