"""NC121 loopback-down."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.hosts import named, not_reported, verb
from ncclcheck.checks.launch._master import saw
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.finding import Evidence, Finding, Fix
from ncclcheck.model.snapshot import Snapshot


@check("NC121", "loopback-down", "The loopback interface is up", needs=("interfaces",))
def loopback_down(snapshot: Snapshot) -> Iterator[Answer]:
    """The interface lo is up on every node.

    ## Why it matters
    Linux delivers packets to a machine's own addresses, all of them, through lo. Where it is down, node 0 cannot reach
    the store that it serves, and the ranks of a node cannot reach each other by TCP: they wait until their timeout.

    ## How to fix
    `ip link set lo up`. In a new network namespace lo is down until somebody brings it up.

    ## Source
    ip-link(8); the kernel's table `local` (ip route show table local) has lo as the device of every local address.
    """
    down = tuple(
        node.host
        for node, interfaces in snapshot.known("interfaces")
        if any(
            interface.kind == "loopback" and interface.operstate == "down" and "up" not in interface.flags
            for interface in interfaces
        )
    )
    claimed = tuple(sighting.host for sighting in saw(snapshot, "loopback-down") if sighting.host not in down)
    if hosts := (*down, *claimed):
        yield Finding(
            "error",
            f"the loopback interface lo is down on {named(hosts)}: {verb(hosts, 'it', 'they')} cannot reach "
            f"{verb(hosts, 'its', 'their')} own addresses, "
            "so neither a store served there nor ranks beside each other work",
            hosts,
            tuple(
                Evidence((host,), "flags of lo", "not up", "up", "netdevice(7), SIOCGIFFLAGS")
                for host in hosts
            ),
            (Fix(f"bring it up on {named(hosts)}", ("sudo ip link set lo up",)),),
        )
    yield from not_reported(snapshot)
