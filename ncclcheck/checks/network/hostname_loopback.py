"""NC208 hostname-loopback."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.gpus import has_no_gpu
from ncclcheck.checks.hosts import job_size, named, not_reported
from ncclcheck.checks.ifname_settings import GLOO_VARIABLE
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.facts import NodeFacts
from ncclcheck.model.finding import Evidence, Finding, Fix, NotApplicable, NotKnown, Severity
from ncclcheck.model.formats.addresses import is_loopback
from ncclcheck.model.snapshot import Node, Snapshot
from ncclcheck.nccl import ifname


@check(
    "NC208",
    "hostname-loopback",
    "The host name resolves to an address that other nodes can reach",
    needs=("names", "environment"),
)
def hostname_loopback(snapshot: Snapshot) -> Iterator[Answer]:
    """On every node its own host name resolves to an address of the node that is not a loopback address.

    ## Why it matters
    Without GLOO_SOCKET_IFNAME, Gloo binds the address that the node's own name resolves to. Debian and Ubuntu map it to
    127.0.1.1 in /etc/hosts, and a name that does not resolve falls back to loopback too: other nodes then cannot
    connect. NCCL jobs use Gloo as well, for CPU groups, barriers and checkpoints. Where no node has a GPU, Gloo carries
    the whole job, so this is an error there, and a warning elsewhere.

    ## How to fix
    Set GLOO_SOCKET_IFNAME to the exact name of the interface between the nodes, or correct /etc/hosts.

    ## Source
    torch/csrc/distributed/c10d/ProcessGroupGloo.cpp (createDefaultDevice); gloo/transport/tcp/device.cc.
    """
    if job_size(snapshot) == 1:
        yield NotApplicable("one node: Gloo can use loopback")
        return
    groups: dict[tuple[Severity, str], list[Node]] = {}
    default_severity: Severity = "error" if has_no_gpu(snapshot) else "warning"
    for node in snapshot.nodes:
        why = _loopback_reason(node.facts)
        if isinstance(why, Missing):
            section = "names" if isinstance(node.facts.names, Missing) else ""
            yield NotKnown(f"the host name: {why}", (node.host,), section)
        elif not why and isinstance(node.facts.interfaces, Missing):
            yield NotKnown(f"whether its addresses are its own: {node.facts.interfaces}", (node.host,))
        elif why:
            severity: Severity = "info" if _has_gloo_interface(node.facts) else default_severity
            groups.setdefault((severity, why), []).append(node)
    for (severity, why), nodes in groups.items():
        yield _finding(severity, why, nodes)
    yield from not_reported(snapshot)


def _loopback_reason(facts: NodeFacts) -> Fact[str]:
    """Why Gloo would end on loopback here; empty where it would not."""
    if isinstance(facts.names, Missing):
        return facts.names
    addresses = facts.names.addresses
    if isinstance(addresses, Missing):
        return "does not resolve" if addresses.missing in {"absent", "error"} else addresses
    # Gloo takes the first address of the list that can be bound, which needs it to be the node's own.
    own_addresses = _own_addresses(facts)
    bindable = [
        address
        for address in addresses
        if is_loopback(address) or own_addresses is None or address in own_addresses
    ]
    if not bindable:
        return f"resolves to {', '.join(addresses)}, which is not an address of this node"
    return f"resolves to {bindable[0]}" if is_loopback(bindable[0]) else ""


def _own_addresses(facts: NodeFacts) -> frozenset[str] | None:
    if isinstance(facts.interfaces, Missing):
        return None
    return frozenset(entry.address for interface in facts.interfaces for entry in interface.addresses)


def _has_gloo_interface(facts: NodeFacts) -> bool:
    return not isinstance(facts.environment, Missing) and ifname.is_set(facts.environment.get(GLOO_VARIABLE))


def _finding(severity: Severity, why: str, nodes: list[Node]) -> Finding:
    hosts = tuple(node.host for node in nodes)
    consequence = (
        f"{GLOO_VARIABLE} is set, so Gloo does not use the host name, but other programs may"
        if severity == "info"
        else "Gloo binds loopback, and other nodes cannot connect"
    )
    return Finding(
        severity,
        f"the host name of {named(hosts)} {why}: {consequence}",
        hosts,
        tuple(
            Evidence(
                (node.host,),
                "host name",
                f"{_name(node)} {why}",
                "an address of the node",
                "getaddrinfo there",
            )
            for node in nodes
        ),
        (
            Fix(
                f"set {GLOO_VARIABLE} to the exact name of the interface between the nodes, or correct /etc/hosts",
                ("getent ahosts $(hostname)",),
            ),
        ),
    )


def _name(node: Node) -> str:
    return node.host if isinstance(node.facts.names, Missing) else repr(node.facts.names.hostname)
