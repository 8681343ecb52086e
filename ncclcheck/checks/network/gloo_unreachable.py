"""NC222 gloo-unreachable."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.chosen import chosen
from ncclcheck.checks.gpus import has_no_gpu
from ncclcheck.checks.hosts import named, not_reported, unread
from ncclcheck.checks.network._peers import evidence
from ncclcheck.checks.network._reach import BLOCKED
from ncclcheck.checks.registry import Answer, check
from ncclcheck.measure.links.probes_by_kind import of_kind
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import Evidence, Finding, Fix, NotKnown
from ncclcheck.model.snapshot import Probe, Snapshot
from ncclcheck.nccl.candidates import GLOO_IFNAME, gloo_addresses


@check(
    "NC222",
    "gloo-unreachable",
    "Nodes can connect to each other at the addresses that Gloo binds",
    needs=("interfaces", "names", "environment"),
    nodes=2,
    joined=True,
)
def gloo_unreachable(snapshot: Snapshot) -> Iterator[Answer]:
    """Every node can be reached at the address that Gloo binds there, where that is another one than NCCL's.

    ## Why it matters
    Without GLOO_SOCKET_IFNAME Gloo binds what the host name resolves to: often an address of another network, or a
    second address of the same interface. If a firewall or a missing route keeps other nodes from it, a process group of
    Gloo hangs while NCCL works. torch uses Gloo on CPUs, and beside NCCL for monitored barriers and checkpoints.

    ## How to fix
    Set GLOO_SOCKET_IFNAME to the interface that NCCL uses, or open the network between the nodes. It is an error where
    the nodes have no GPU, so that Gloo carries the data, and else a warning.

    ## Source
    torch/csrc/distributed/c10d/ProcessGroupGloo.cpp, createDefaultDevice: the first local address of the host name.
    """
    of_nccl = {choice.host: choice.address for choice in chosen(snapshot)}
    of_gloo = {node.host: gloo_addresses(node.facts) for node in snapshot.nodes}
    differing = {
        (host, address)
        for host, places in of_gloo.items()
        for _, address in places
        if of_nccl.get(host) != address
    }
    for section in ("names", "environment", "interfaces"):
        yield from unread(snapshot, section)
    yield from not_reported(snapshot)
    yield from _families(snapshot, of_gloo)
    if not differing:
        return
    if isinstance(snapshot.probes, Missing):
        yield NotKnown(f"reach: {snapshot.probes}")
        return
    probed = [
        probe for probe in of_kind(snapshot.probes, "tcp") if (probe.to_host, probe.address) in differing
    ]
    blocked = [probe for probe in probed if probe.outcome in (*BLOCKED, "answer-lost")]
    if blocked:
        yield _finding(snapshot, blocked)
    tried = {(probe.to_host, probe.address) for probe in probed if probe.outcome != "error"}
    for host, address in sorted(differing - tried):
        yield NotKnown(f"the address {address} that Gloo binds was not probed", (host,))


def _finding(snapshot: Snapshot, blocked: list[Probe]) -> Finding:
    hosts = tuple(dict.fromkeys(probe.to_host for probe in blocked))
    sources = tuple(dict.fromkeys(probe.from_host for probe in blocked))
    addresses = tuple(dict.fromkeys(probe.address for probe in blocked))
    outcomes = " / ".join(dict.fromkeys(probe.outcome for probe in blocked))
    return Finding(
        "error" if has_no_gpu(snapshot) else "warning",
        f"Gloo binds {named(addresses)} on {named(hosts)}, where {named(sources)} cannot connect ({outcomes}): "
        "a process group of Gloo hangs, although NCCL uses another address",
        hosts,
        evidence(blocked),
        (_fix(snapshot),),
    )


def _families(snapshot: Snapshot, of_gloo: dict[str, tuple[tuple[str, str], ...]]) -> Iterator[Finding]:
    """Say where Gloo binds IPv4 on some nodes and IPv6 on others: it refuses to connect them."""
    first = {host: places[0][1] for host, places in of_gloo.items() if places}
    of_ipv6 = tuple(host for host, address in first.items() if ":" in address)
    of_ipv4 = tuple(host for host in first if host not in of_ipv6)
    if of_ipv4 and of_ipv6:
        yield Finding(
            "error" if has_no_gpu(snapshot) else "warning",
            f"Gloo binds IPv4 on {named(of_ipv4)} and IPv6 on {named(of_ipv6)}: a process group of Gloo fails at once",
            min(of_ipv4, of_ipv6, key=len),
            tuple(
                Evidence(
                    (host,), "the address that Gloo binds", first[host], "one family", "the facts of this run"
                )
                for host in (of_ipv4[0], of_ipv6[0])
            ),
            (_fix(snapshot),),
        )


def _fix(snapshot: Snapshot) -> Fix:
    interfaces = tuple(dict.fromkeys(choice.name for choice in chosen(snapshot)))
    return Fix(
        f"set {GLOO_IFNAME} to the interface that NCCL uses, or open that network between the nodes",
        ("getent ahosts $(hostname)   # what Gloo binds", "sudo nft list ruleset   # shows IPv6 rules too"),
        {GLOO_IFNAME: interfaces[0]} if len(interfaces) == 1 else {},
    )
