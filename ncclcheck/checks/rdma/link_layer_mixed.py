"""NC308 link-layer-mixed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ncclcheck.checks.hosts import named, not_reported
from ncclcheck.checks.majority import compare, sentence
from ncclcheck.checks.majority import evidence as compared_evidence
from ncclcheck.checks.rdma_ports import (
    NATIVE,
    ROCE,
    PortOn,
    Surveyed,
    file_of,
    not_surveyed,
    pieces,
    surveyed,
    without_devices,
)
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import Finding, Fix, NotApplicable, NotKnown
from ncclcheck.model.formats.prose import listed
from ncclcheck.model.hardware import RdmaPort
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.nccl.rdma import hca


@check(
    "NC308",
    "link-layer-mixed",
    "NCCL would use either InfiniBand or RoCE ports, not both",
    needs=("rdma",),
    alike=("environment", "nccl", "rdma", "software"),
)
def link_layer_mixed(snapshot: Snapshot) -> Iterator[Answer]:
    """The ports that NCCL would use have one link layer, InfiniBand or Ethernet, on each node and on all of them.

    ## Why it matters
    NCCL uses every ACTIVE port that NCCL_IB_HCA does not exclude, also the Ethernet card for management or storage. A
    connection between an InfiniBand and an Ethernet port cannot work ("Attempted to connect incompatible devices"),
    and otherwise the slow network still carries a share of the traffic.

    ## How to fix
    Name the ports of the fast network in NCCL_IB_HCA, in the exact form: `NCCL_IB_HCA==mlx5_0,mlx5_1` (without the
    second `=`, mlx5_1 also covers mlx5_10).

    ## Source
    NCCL src/transport/net_ib.cc (ncclIbInit; since 2.24 "Try selecting NICs of only one link type using NCCL_IB_HCA");
    /sys/class/infiniband/*/ports/*/link_layer.
    """
    nodes = surveyed(snapshot)
    yield from without_devices(nodes)
    if any(node.rdma.ports for node in nodes) and not any(node.active for node in nodes):
        yield NotApplicable("there is no RDMA port that NCCL could use")
    yield from _within([node for node in nodes if {NATIVE, ROCE} <= _layers(node.active)])
    yield from _between([node for node in nodes if _layers(node.active)])
    for node in nodes:
        unknown = [hca.name_of(port) for port in node.selected if _is_unknown(port)]
        if unknown:
            yield NotKnown(f"the state or link layer of {listed(unknown)} could not be read", (node.host,))
    yield from not_surveyed(snapshot)
    yield from not_reported(snapshot)


def _is_unknown(port: RdmaPort) -> bool:
    """True if the port may count, and either its state or its link layer could not be read."""
    if isinstance(port.state, Missing):
        return True
    return port.state == "ACTIVE" and isinstance(port.link_layer, Missing)


def _layers(ports: Sequence[RdmaPort]) -> set[str]:
    return {port.link_layer for port in ports if isinstance(port.link_layer, str)}


def _split(node: Surveyed) -> tuple[list[RdmaPort], list[RdmaPort]]:
    """The ports of the layer that most have (of a tie, the faster ones; else InfiniBand), and the others."""
    groups = [[port for port in node.active if port.link_layer == layer] for layer in (NATIVE, ROCE)]
    ordered = sorted(groups, key=lambda ports: (-len(ports), -_rate(ports)))
    return ordered[0], ordered[1]


def _rate(ports: Sequence[RdmaPort]) -> float:
    return max((port.rate_gbps for port in ports if not isinstance(port.rate_gbps, Missing)), default=0.0)


def _within(nodes: Sequence[Surveyed]) -> Iterator[Finding]:
    groups: dict[tuple[str, str], list[Surveyed]] = {}
    for node in nodes:
        usual, removed = _split(node)
        groups.setdefault((hca.names_of(usual), hca.names_of(removed)), []).append(node)
    for group in groups.values():
        hosts = tuple(member.host for member in group)
        usual, removed = _split(group[0])
        tie = " (as many of each)" if len(usual) == len(removed) else ""
        yield Finding(
            "warning",
            f"on {named(hosts)} NCCL would use {listed(map(hca.name_of, removed))} ({_words(removed)}) together with "
            f"{listed(map(hca.name_of, usual))} ({_words(usual)}){tie}: ports of the two kinds cannot connect to each "
            "other, and the slower network carries a share of the traffic",
            hosts,
            pieces(
                (
                    PortOn(member.host, port),
                    str(port.link_layer),
                    str(usual[0].link_layer),
                    file_of(port, "link_layer"),
                )
                for member in group
                for port in removed
            ),
            (_exactly(usual, {port.device for port in removed}),),
        )


def _words(ports: Sequence[RdmaPort]) -> str:
    rates = {f"{port.rate_gbps:g} Gbit/s" for port in ports if not isinstance(port.rate_gbps, Missing)}
    return ", ".join([str(ports[0].link_layer), *sorted(rates)])


def _exactly(ports: Sequence[RdmaPort], others: set[str]) -> Fix:
    """Exact names; with the port number where another port of the device is to be left out."""
    names = dict.fromkeys(hca.name_of(port) if port.device in others else port.device for port in ports)
    value = "=" + ",".join(names)
    return Fix(
        f"use the {ports[0].link_layer} ports only",
        (f"export NCCL_IB_HCA='{value}'",),
        {"NCCL_IB_HCA": value},
        "the names must be the same on every node; leave the Ethernet ports in instead if they are the fast network",
    )


def _between(nodes: Sequence[Surveyed]) -> Iterator[Finding]:
    """By the layer of most ports of each node."""
    comparison = compare((node.host, str(_split(node)[0][0].link_layer)) for node in nodes)
    if comparison.differs:
        yield Finding(
            "error",
            f"the link layer of the RDMA ports differs: {sentence(comparison)}: an InfiniBand port cannot connect to "
            "an Ethernet port",
            comparison.odd_hosts,
            compared_evidence(
                comparison,
                "link layer of most ports NCCL would use",
                "/sys/class/infiniband/*/ports/*/link_layer",
            ),
            (
                Fix(
                    "choose ports of one kind on all nodes with NCCL_IB_HCA, or use nodes of one fabric",
                    ("grep . /sys/class/infiniband/*/ports/*/link_layer",),
                ),
            ),
        )
