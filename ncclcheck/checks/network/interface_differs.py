"""NC205 interface-differs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from ipaddress import IPv4Network, IPv6Network

from ncclcheck.checks.chosen import chosen, not_chosen
from ncclcheck.checks.hosts import named
from ncclcheck.checks.majority import HostComparison, compare, evidence, sentence
from ncclcheck.checks.network._reach import BLOCKED, directions
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.finding import Finding, Fix, NotKnown, Severity
from ncclcheck.model.formats.addresses import family, network
from ncclcheck.model.snapshot import Snapshot

_ALL_THE_SAME = {
    "subnets": "the nodes reach each other through a router",
    "address families": "the nodes reach each other, since they have both",
}
_NAME_FIX = Fix("make every node choose the same network: set NCCL_SOCKET_IFNAME", ("ip -brief address",))


@check(
    "NC205",
    "interface-differs",
    "NCCL uses the same network on all nodes",
    needs=("interfaces", "environment", "nccl"),
    nodes=2,
    joined=True,
)
def interface_differs(snapshot: Snapshot) -> Iterator[Answer]:
    """The addresses that NCCL uses are of one family and in networks that reach each other.

    ## Why it matters
    Every node hands its own address to the others, who connect to it with a socket of that address's family. A node
    without IPv6 cannot connect to an IPv6 address, and a node on the management network may not reach one on the fast
    network: NCCL then hangs at its start. Names that differ are information, and so are families or subnets between
    which every connection succeeded.

    ## How to fix
    Set NCCL_SOCKET_IFNAME so that every node chooses the same network; a prefix or a comma list covers names that
    differ between nodes. NCCL_SOCKET_FAMILY=AF_INET sets the family.

    ## Source
    NCCL src/bootstrap.cc: each rank sends the address of its first interface; src/misc/socket.cc (ncclSocketInit): a
    socket has the family of the address that it connects to.
    """
    seen = chosen(snapshot)
    families = compare((choice.host, family(choice.address)) for choice in seen)
    if families.differs:
        yield from _reached(snapshot, "address families", families)
    else:
        # A /32 or /128 says nothing about neighbours: clouds and container networks route every address on its own.
        subnets = compare(
            (choice.host, subnet)
            for choice in seen
            if (subnet := _subnet(network(choice.address, choice.prefix_length)))
        )
        if subnets.differs:
            yield from _reached(snapshot, "subnets", subnets)
    names = compare((choice.host, choice.name) for choice in seen)
    if names.differs:
        yield _finding("info", "interfaces", names, "a setting by name must match all of them")
    yield from not_chosen(snapshot)


@cache
def _subnet(subnet: IPv4Network | IPv6Network) -> str:
    """Return the subnet as text, empty where it has one address; most nodes are in the same one."""
    return str(subnet) if subnet.num_addresses > 1 else ""


def _reached(snapshot: Snapshot, what: str, comparison: HostComparison[str]) -> Iterator[Answer]:
    """The difference, by the result of the connections between the nodes that differ."""
    home = {host: group.value for group in comparison.groups for host in group.hosts}
    crossing = [
        probe
        for probe in directions(snapshot, "tcp")
        if home.get(probe.from_host) is not None and home.get(probe.from_host) != home.get(probe.to_host)
    ]
    blocked = [probe for probe in crossing if probe.outcome in (*BLOCKED, "answer-lost", "wrong-peer")]
    unknown = [probe for probe in crossing if probe.outcome != "ok" and probe not in blocked]
    if blocked:
        pair = named((blocked[0].from_host, blocked[0].to_host))
        yield _finding("error", what, comparison, f"the nodes cannot connect ({pair}: {blocked[0].outcome})")
    elif len(unknown) < len(crossing):
        yield _finding("info", what, comparison, _ALL_THE_SAME[what])
        for probe in unknown:
            yield NotKnown(f"the connection to {probe.to_host}: {probe.outcome}", (probe.from_host,))
    else:
        yield _finding("warning", what, comparison, "whether the nodes can connect was not tested")
        yield NotKnown(f"no probes between the {what}")


def _finding(severity: Severity, what: str, comparison: HostComparison[str], why: str) -> Finding:
    return Finding(
        severity,
        f"NCCL uses different {what}: {sentence(comparison)}: {why}",
        comparison.odd_hosts,
        evidence(comparison, f"{what} NCCL uses", "the choice of NCCL on each node"),
        (_NAME_FIX,),
    )
