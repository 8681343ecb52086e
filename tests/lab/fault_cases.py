"""Faults of a cluster, one or two at a time, each with the verdict that was written down before it was first run."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from tests.lab import faults
from tests.lab.launched import PORT, Told
from tests.lab.namespaces import call, inside
from tests.lab.nodes import Lab, Node


class Expected(Struct, frozen=True):
    """A finding that has to be there: its check, its hosts (None: any), and words of its summary."""

    slug: str
    hosts: tuple[str, ...] | None = None
    words: str = ""


class FaultCase(Struct, frozen=True):
    """So many nodes, what is done to them, and the verdict: the exit code and the findings that are no information.

    `quiet`: checks that must not find anything but information. `absent`: nodes that are never started.
    """

    name: str
    nodes: int
    build: Callable[[Lab], None]
    code: int
    findings: tuple[Expected, ...] = ()
    quiet: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    env: dict[str, str] = {}
    absent: tuple[str, ...] = ()
    flaps: str = ""  # the interface of node2 that goes down and up while the run lasts


def assert_verdict(case: FaultCase, first: Told) -> None:
    """Node 0 ended with the exit code and the findings of the case, and without those that must be quiet."""
    assert first.code == case.code, str(first.finished)
    for expected in case.findings:
        assert any(
            found["severity"] != "info"
            and expected.words in found["summary"]
            and (expected.hosts is None or set(expected.hosts) == set(found["hosts"]))
            for found in first.findings(expected.slug)
        ), f"{expected}\n{first.finished}"
    assert first.slugs.isdisjoint(case.quiet), str(first.finished)


def _loses(name: str, share: float = 0.02) -> Callable[[Lab], None]:
    return lambda lab: faults.lose(lab[name], share)


def _loses_what_it_sends(lab: Lab) -> None:
    for node in lab.nodes:
        if node.name != "node2":
            faults.lose(node, 0.02, source=lab["node2"])


def _loses_both_ways(lab: Lab) -> None:
    _loses_what_it_sends(lab)
    faults.lose(lab["node2"], 0.02)


def _all_lose(lab: Lab) -> None:
    for node in lab.nodes:
        faults.lose(node, 0.02)


def _two_lose(lab: Lab) -> None:
    faults.lose(lab["node2"], 0.03)
    faults.lose(lab["node3"], 0.03)


def _loses_on_the_spare_network(lab: Lab) -> None:
    lab.add_network("eth1", "10.79.0")
    drop = ["-m", "statistic", "--mode", "random", "--probability", "0.05", "-j", "DROP"]
    call(inside(lab["node2"].namespace, ["iptables", "-w", "-A", "INPUT", "-i", "eth1", *drop]))


def _shaped_and_lossy(lab: Lab) -> None:
    for node in lab.nodes:
        faults.shape(node, "100mbit")
    faults.lose(lab["node2"], 0.02)


def _lossy_and_slow(lab: Lab) -> None:
    faults.lose(lab["node2"], 0.02)
    faults.shape(lab["node4"], "50mbit")


def _blocked_pair(lab: Lab, source: str, target: str) -> None:
    ports = faults.ephemeral_ports(lab[target])
    faults.drop(lab[target], ports, source=lab[source], syn_only=True)


def _blocked_pair_and_lossy(lab: Lab) -> None:
    _blocked_pair(lab, "node1", "node2")
    faults.lose(lab["node4"], 0.02)


def _second_network(lab: Lab) -> None:
    lab.add_network("eth1", "10.79.0")


def _drops_answers(*names: str) -> Callable[[Lab], None]:
    def build(lab: Lab) -> None:
        for name in names:
            faults.drop(lab[name], source=lab["node1"])

    return build


def _answers_here_and_requests_there(lab: Lab) -> None:
    faults.drop(lab["node2"], source=lab["node1"])
    faults.drop(lab["node1"], PORT, source=lab["node3"])


def _own_name(address: str, *names: str) -> Callable[[Lab], None]:
    def build(lab: Lab) -> None:
        for name in names:
            faults.wrong_name(lab[name], name, address)

    return build


def _long_name(lab: Lab) -> None:
    lab["node2"].name = "node2-" + "x" * 58


def _code(node: Node) -> Path:
    folder = node.folder / "home" / "code"
    folder.mkdir()
    (folder / "train.py").write_text("print(1)\n")
    (folder / "config").symlink_to("a.toml")
    return folder


def _another_link(lab: Lab) -> None:
    for node in lab.nodes:
        folder = _code(node)
        if node.name == "node3":
            (folder / "config").unlink()
            (folder / "config").symlink_to("b.toml")


def _folder_for_a_file(lab: Lab) -> None:
    for node in lab.nodes:
        folder = _code(node)
        if node.name == "node3":
            (folder / "train.py").unlink()
            (folder / "train.py").mkdir()
            (folder / "train.py" / "inner.py").write_text("")


def _odd_names(lab: Lab) -> None:
    for node in lab.nodes:
        folder = _code(node)
        if node.name == "node3":
            Path(os.fsdecode(bytes(folder) + b"/\xff\xfe.py")).write_text("")
            (folder / "a\nb.py").write_text("")


def _no_tree(lab: Lab) -> None:
    for node in lab.nodes:
        if node.name != "node3":
            _code(node)


def _three_trees(lab: Lab) -> None:
    for node in lab.nodes:
        (_code(node) / "train.py").write_text(f"print({node.number})\n")


def _routed_and_blocked(lab: Lab) -> None:
    call(inside(lab.switch.namespace, ["sysctl", "-q", "-w", "net.ipv4.ip_forward=1"]))
    lab.switch.ip("addr add 10.99.0.254/24 dev br-eth0")
    for node in lab.nodes:
        if node.number <= len(lab.nodes) // 2:
            node.ip("route add default via 10.78.0.254")
            continue
        node.address = f"10.99.0.{node.number}"
        own = f"addr add {node.address}/24 dev eth0"
        node.ip("addr flush dev eth0", own, "route add default via 10.99.0.254")
    for node in lab.nodes:
        node.set_hosts({known.name: known.address for known in lab.nodes})
    _blocked_pair(lab, "node3", "node2")


def _small_mtu_and_slow(lab: Lab) -> None:
    for node in lab.nodes:
        faults.set_mtu(node, 9000, switch_mtu=1500 if node.name == "node2" else 9000)
    faults.shape(lab["node4"], "50mbit")


def _isolated_pair_of_four(lab: Lab) -> None:
    for source in ("node3", "node4"):
        for target in ("node1", "node2"):
            _blocked_pair(lab, source, target)
            _blocked_pair(lab, target, source)


CODE = ("--code", "code")
SOON = ("--join-timeout", "8")
CASES = (
    FaultCase(
        "loses-what-it-sends", 4, _loses_what_it_sends, 1, (Expected("packet-loss", ("node2",), "sends"),)
    ),
    FaultCase(
        "loses-from-one-partner",
        4,
        lambda lab: faults.lose(lab["node1"], 0.03, source=lab["node3"]),
        1,
        (Expected("packet-loss", ("node1", "node3"), "from node3 to node1"),),
    ),
    FaultCase("loses-both-ways", 4, _loses_both_ways, 1, (Expected("packet-loss", ("node2",), "receives"),)),
    FaultCase(
        "all-lose",
        4,
        _all_lose,
        1,
        (Expected("packet-loss", ("node1", "node2", "node3", "node4"), "between all"),),
    ),
    FaultCase(
        "two-lose",
        4,
        _two_lose,
        1,
        (Expected("packet-loss", ("node2",)), Expected("packet-loss", ("node3",))),
    ),
    FaultCase("loses-a-fifth", 3, _loses("node3", 0.2), 1, (Expected("packet-loss", ("node3",)),)),
    FaultCase(
        "loses-5-percent-of-two", 2, _loses("node1", 0.05), 1, (Expected("packet-loss", None, "to node1"),)
    ),
    FaultCase("loses-on-a-spare-network", 3, _loses_on_the_spare_network, 0, quiet=("packet-loss",)),
    # Behind a shaper few pairs may show the loss: then both ends of one pair are named.
    FaultCase("shaped-and-lossy", 3, _shaped_and_lossy, 1, (Expected("packet-loss", None, "node"),)),
    FaultCase(
        "lossy-and-slow",
        4,
        _lossy_and_slow,
        1,
        (Expected("packet-loss", ("node2",)), Expected("interface-slow", ("node4",))),
    ),
    FaultCase(
        "blocked-pair-and-lossy",
        4,
        _blocked_pair_and_lossy,
        1,
        (Expected("packet-loss", ("node4",)), Expected("peer-one-way")),
    ),
    FaultCase(
        "silent-and-lossy",
        4,
        _loses("node2"),
        1,
        (Expected("packet-loss", ("node2",)), Expected("node-silent", ("node-rank-3",))),
        words=SOON,
        absent=("node4",),
    ),
    FaultCase("spare-link-flaps", 3, _second_network, 0, quiet=("link-flapped",), flaps="eth1"),
    FaultCase("used-link-flaps", 4, lambda _: None, 1, (Expected("link-flapped", ("node2",)),), flaps="eth0"),
    FaultCase(
        "two-drop-answers",
        4,
        _drops_answers("node3", "node4"),
        1,
        (Expected("master-filtered", ("node3", "node4"), "drops the answers"),),
    ),
    FaultCase(
        "answers-here-requests-there",
        3,
        _answers_here_and_requests_there,
        1,
        (
            Expected("master-filtered", ("node2",), "drops the answers"),
            Expected("master-filtered", ("node3",), "drops the port"),
        ),
    ),
    FaultCase(
        "drops-all-of-a-peer",
        3,
        lambda lab: faults.drop(lab["node3"], source=lab["node2"]),
        1,
        (Expected("peer-one-way"),),
    ),
    FaultCase("two-halves", 4, _isolated_pair_of_four, 1, (Expected("peer-filtered", None, "group"),)),
    FaultCase(
        "one-loopback-name",
        3,
        _own_name("127.0.1.1", "node2"),
        1,
        (Expected("hostname-loopback", ("node2",)),),
    ),
    FaultCase(
        "name-of-another-node",
        3,
        _own_name("10.78.0.1", "node2"),
        1,
        (Expected("hostname-loopback", ("node2",), "not an address of this node"),),
    ),
    FaultCase(
        "long-name-with-an-interface",
        2,
        _long_name,
        0,
        quiet=("hostname-long",),
        env={"GLOO_SOCKET_IFNAME": "eth0"},
    ),
    FaultCase(
        "another-link", 3, _another_link, 1, (Expected("code-differs", ("node3",), "(config)"),), words=CODE
    ),
    FaultCase(
        "folder-for-a-file",
        3,
        _folder_for_a_file,
        1,
        (Expected("code-differs", ("node3",), "train.py/inner.py"),),
        words=CODE,
    ),
    FaultCase(
        "odd-names", 3, _odd_names, 1, (Expected("code-differs", ("node3",), "\\xff\\xfe.py"),), words=CODE
    ),
    FaultCase("no-tree", 3, _no_tree, 1, (Expected("code-differs", ("node3",), "absent"),), words=CODE),
    FaultCase("three-trees", 3, _three_trees, 1, (Expected("code-differs", None, "train.py"),), words=CODE),
    FaultCase("routed-and-blocked", 4, _routed_and_blocked, 1, (Expected("peer-one-way"),)),
    FaultCase(
        "small-mtu-and-slow",
        4,
        _small_mtu_and_slow,
        1,
        (Expected("mtu-blackhole"), Expected("interface-slow", ("node4",))),
    ),
)


@contextmanager
def flapping(lab: Lab, interface: str) -> Iterator[None]:
    """The link of node2 goes down and up while the block runs; nothing happens without an interface."""
    is_over = threading.Event()

    def flap() -> None:
        port = f"{interface}-2"
        while interface and not is_over.wait(0.4):
            lab.switch.ip(f"link set {port} down", f"link set {port} up")

    thread = threading.Thread(target=flap, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join(10)
