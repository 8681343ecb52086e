"""Real faults: firewalls, foreign listeners, wrong names, MTUs, doubled addresses and slow links."""

from __future__ import annotations

import os
import select
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, TypeAlias

from tests.lab.namespaces import call, inside
from tests.lab.nodes import PYTHON, Node
from tests.lab.process import Running

Ports: TypeAlias = "int | tuple[int, int] | None"  # one, a range with both ends, or all
RejectWith = Literal["tcp-reset", "icmp-port-unreachable", "icmp-host-prohibited"]
HoldMode = Literal["silent", "banner", "http", "tcpstore", "full"]

ANY_ADDRESS = "0.0.0.0"  # noqa: S104 (of a namespace that only the lab reaches)

# firewall: rules in the INPUT chain of the node


def drop(
    node: Node,
    ports: Ports = None,
    *,
    source: Node | str | None = None,
    syn_only: bool = False,
    protocol: str = "tcp",
) -> None:
    """Packets to `ports` of `node` vanish: a filtered port.

    `syn_only` drops connection attempts alone. It is what makes ephemeral ports unreachable in one direction:
    without it the replies to the node's own outgoing connections, which go to such a port as well, vanish too.
    """
    _rule(node, ports, source, ["DROP"], syn_only=syn_only, protocol=protocol)


def reject(
    node: Node,
    ports: Ports = None,
    answer: RejectWith = "tcp-reset",
    *,
    source: Node | str | None = None,
    syn_only: bool = False,
) -> None:
    """Packets to `ports` of `node` are answered with a refusal. An ICMP answer carries an unreachable, not a reset."""
    _rule(node, ports, source, ["REJECT", "--reject-with", answer], syn_only=syn_only, protocol="tcp")


def lose(node: Node, share: float, *, source: Node | None = None) -> None:
    """The node loses that share of the packets that it receives, at random; nothing is answered or counted."""
    match = ["-s", source.address] if source else []
    drop_some = ["-m", "statistic", "--mode", "random", "--probability", str(share), "-j", "DROP"]
    call(inside(node.namespace, ["iptables", "-w", "-A", "INPUT", "-i", "eth0", *match, *drop_some]))


def drop_outgoing(node: Node, target: Node) -> None:
    """The node's own firewall lets nothing out to `target`; the kernel tells who sends (EPERM)."""
    call(inside(node.namespace, ["iptables", "-w", "-A", "OUTPUT", "-d", target.address, "-j", "DROP"]))


def lift_firewall(node: Node) -> None:
    """Remove every rule that `drop` and `reject` made on `node`."""
    call(inside(node.namespace, ["iptables", "-w", "-F", "INPUT"]))


def _rule(
    node: Node, ports: Ports, source: Node | str | None, target: list[str], *, syn_only: bool, protocol: str
) -> None:
    match = ["-p", protocol]
    if source is not None:
        match += ["-s", source.address if isinstance(source, Node) else source]
    if ports is not None:
        match += ["--dport", str(ports) if isinstance(ports, int) else f"{ports[0]}:{ports[1]}"]
    match += ["--syn"] if syn_only else []
    call(inside(node.namespace, ["iptables", "-w", "-A", "INPUT", *match, "-j", *target]))


def ephemeral_ports(node: Node) -> tuple[int, int]:
    """The node's `ip_local_port_range`: where NCCL and Gloo listen."""
    low, high = call(inside(node.namespace, ["sysctl", "-n", "net.ipv4.ip_local_port_range"])).split()
    return int(low), int(high)


# ports held by another program


@contextmanager
def hold_port(
    node: Node, port: int, mode: HoldMode = "silent", *, address: str = ANY_ADDRESS
) -> Iterator[Running]:
    """A foreign program listens on `port` of `node` while the block runs; it listens when the block begins.

    silent: accepts and says nothing; banner: greets as sshd does; http: answers 400; tcpstore: a real torch
    TCPStore, of another job; full: never accepts, and its queue is full.
    """
    read_end, write_end = os.pipe()
    program = Path(__file__).with_name("port_holder.py")
    argv = [PYTHON, str(program), mode, address, str(port), str(write_end)]
    try:
        with node.service(argv, pass_fds=[write_end]) as running:
            os.close(write_end)
            ready = select.select([read_end], [], [], 60)[0] and os.read(read_end, 1)
            if not ready:
                raise AssertionError(f"{mode} on port {port} of {node.name} did not listen: {running.stderr}")
            yield running
    finally:
        os.close(read_end)


# names


def loopback_name(node: Node, address: str = "127.0.1.1") -> None:
    """The node's own name leads to a loopback address, as Debian's installer writes it."""
    node.set_hosts({**node.hosts, node.name: address})


def forget_name(node: Node, name: str) -> None:
    """On `node` nothing resolves `name`."""
    node.set_hosts({known: address for known, address in node.hosts.items() if known != name})


def wrong_name(node: Node, name: str, address: str) -> None:
    """On `node`, `name` leads to `address`: another node's, or nobody's."""
    node.set_hosts({**node.hosts, name: address})


# the link


def set_mtu(node: Node, mtu: int, *, switch_mtu: int | None = None, interface: str = "eth0") -> None:
    """The node's interface has `mtu` and its port of the switch `switch_mtu` (None: the same).

    A frame larger than the port takes vanishes without a word: with 9000 and 1500 on both nodes of a pair, small
    messages pass and large ones do not. One segment per packet, because veth passes a larger one whole (the kernel's
    `__is_skb_forwardable` does not look at the length of a GSO packet).
    """
    port = f"{interface}-{node.number}"
    node.lab.switch.ip(f"link set {port} mtu {switch_mtu or mtu}")
    node.ip(f"link set {interface} gso_max_segs 1 mtu {mtu}")


def duplicate_address(node: Node, address: str, *, interface: str = "eth0") -> None:
    """`node` has `address`, which is another node's, as well as its own."""
    node.ip(f"addr add {address}/24 dev {interface}")


BURST = 256 << 10  # bytes that a shaped link carries at once after it was idle


def shape(node: Node, rate: str, *, interface: str = "eth0") -> None:
    """The node sends and receives at most `rate` ("1gbit", "200mbit") on `interface`, and a burst after idle time."""
    bucket = ["root", "tbf", "rate", rate, "burst", str(BURST), "latency", "50ms"]
    port = f"{interface}-{node.number}"
    call(inside(node.namespace, ["tc", "qdisc", "replace", "dev", interface, *bucket]))
    call(inside(node.lab.switch.namespace, ["tc", "qdisc", "replace", "dev", port, *bucket]))


def unplug(node: Node, *, interface: str = "eth0") -> None:
    """The node's cable is out: its interface is up and has no carrier."""
    node.lab.switch.ip(f"link set {interface}-{node.number} down")
