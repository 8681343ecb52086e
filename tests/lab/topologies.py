"""Paths between the nodes of a lab that are slower than the nodes' own: of a pair, of two halves, of all together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from tests.lab.faults import BURST
from tests.lab.namespaces import call, delete, inside
from tests.lab.nodes import Lab, Node

_ROUTER = "10.78.0.253"


def bucket(rate: str) -> list[str]:
    """The token bucket that limits an interface."""
    return ["tbf", "rate", rate, "burst", str(BURST), "latency", "50ms"]


def limit(namespace: str, interface: str, rate: str) -> None:
    """What leaves this interface is limited."""
    call(inside(namespace, ["tc", "qdisc", "replace", "dev", interface, "root", *bucket(rate)]))


def slow_path(source: Node, target: Node, rate: str, usual: str) -> None:
    """`source` sends at `rate` to `target`, and at `usual` to all others."""
    tc = ["tc", "qdisc", "replace", "dev", "eth0", "root", "handle", "1:", "htb", "default", "20"]
    call(inside(source.namespace, tc))
    for name, own in (("1:10", rate), ("1:20", usual)):
        own_class = ["tc", "class", "add", "dev", "eth0", "parent", "1:", "classid", name, "htb", "rate", own]
        call(inside(source.namespace, [*own_class, "burst", "64kb", "cburst", "64kb"]))
    match = ["protocol", "ip", "u32", "match", "ip", "dst", f"{target.address}/32", "flowid", "1:10"]
    call(inside(source.namespace, ["tc", "filter", "add", "dev", "eth0", "parent", "1:", *match]))


def two_bridges(lab: Lab, far: Iterable[Node], rate: str) -> None:
    """The nodes of `far` are on a second bridge; all traffic to it shares a trunk of `rate` each way."""
    lines = ["link add br-far type bridge mcast_snooping 0", "link add trunk type veth peer name trunk-far"]
    lines += ["link set trunk master br-eth0 up", "link set trunk-far master br-far up", "link set br-far up"]
    lines += [f"link set eth0-{node.number} master br-far" for node in far]
    lab.switch.ip(*lines)
    for interface in ("trunk", "trunk-far"):
        limit(lab.switch.namespace, interface, rate)


@contextmanager
def shared_backplane(lab: Lab, rate: str) -> Iterator[None]:
    """Send all traffic between the nodes through one queue of `rate` in the block: a router behind isolated ports."""
    router = f"{lab.prefix}router"
    call(["ip", "netns", "add", router])
    try:
        _route(lab, router)
        limit(lab.switch.namespace, "uplink", rate)
        yield
    finally:
        delete([router])


def _route(lab: Lab, router: str) -> None:
    switch = lab.switch
    switch.ip(f"link add uplink type veth peer name port netns {router}", "link set uplink master br-eth0 up")
    for node in lab.nodes:
        call(
            inside(
                switch.namespace, ["bridge", "link", "set", "dev", f"eth0-{node.number}", "isolated", "on"]
            )
        )
    for words in (
        ["ip", "addr", "add", f"{_ROUTER}/24", "dev", "port"],
        ["ip", "link", "set", "port", "up"],
        ["sysctl", "-q", "-w", "net.ipv4.ip_forward=1", "net.ipv4.conf.port.proxy_arp_pvlan=1"],
        ["sysctl", "-q", "-w", "net.ipv4.conf.all.send_redirects=0", "net.ipv4.conf.port.send_redirects=0"],
    ):
        call(inside(router, words))
