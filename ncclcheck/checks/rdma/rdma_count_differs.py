"""NC302 rdma-count-differs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ncclcheck.checks.hosts import named, not_reported
from ncclcheck.checks.majority import HostComparison, compare, sentence
from ncclcheck.checks.rdma_ports import (
    Surveyed,
    not_surveyed,
    surveyed,
    without_devices,
)
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import Evidence, Finding, Fix, NotKnown
from ncclcheck.model.formats.prose import listed
from ncclcheck.model.hardware import RdmaPort
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.nccl.rdma import hca

_FOLDER = "/sys/class/infiniband"
_FIX = Fix(
    "compare the cards in the kernel with those on the bus; a card missing from the bus needs a "
    "reboot or a replacement",
    (
        "ls /sys/class/infiniband",
        "lspci | grep -i -e mellanox -e infiniband -e ethernet",
        "sudo dmesg | grep -i mlx5",
    ),
)


@check(
    "NC302",
    "rdma-count-differs",
    "Every node has the same number of RDMA ports for NCCL",
    needs=("rdma",),
    nodes=2,
    alike=("environment", "nccl", "rdma", "software"),
)
def rdma_count_differs(snapshot: Snapshot) -> Iterator[Answer]:
    """The number of RDMA ports that NCCL_IB_HCA lets NCCL use is the same on all nodes, up or down, and so is EFA's.

    ## Why it matters
    A card that fell off the bus is no longer listed. NCCL pairs the cards of the nodes: if one node has fewer, its
    GPUs share a card, which is the bottleneck of the whole ring. A node with none uses sockets where the others use
    RDMA, and the job fails at its start or hangs.

    ## How to fix
    Compare `ls /sys/class/infiniband` and `lspci`. A card that is on the bus without an RDMA device lacks its driver
    (`modprobe mlx5_ib`); one that is not on the bus needs a reboot or a replacement.

    ## Source
    /sys/class/infiniband. NCCL only mentions it: src/init.cc, NCCL_IGNORE_NET_MISMATCH.
    """
    nodes = surveyed(snapshot)
    yield from without_devices(nodes)
    yield from _compared([(node, node.selected) for node in nodes], "RDMA ports that NCCL may use")
    yield from _compared([(node, node.others) for node in nodes], "EFA ports")
    for node in nodes:
        for port in node.rdma.ports:
            if isinstance(port.link_layer, Missing):
                yield NotKnown(f"link layer of {hca.name_of(port)}: {port.link_layer}", (node.host,))
    yield from not_surveyed(snapshot)
    yield from not_reported(snapshot)


def _compared(ports: Sequence[tuple[Surveyed, tuple[RdmaPort, ...]]], what: str) -> Iterator[Finding]:
    comparison = compare((node.host, len(members)) for node, members in ports)
    if not comparison.differs:
        return
    has_none = any(group.value == 0 for group in comparison.groups)
    cost = (
        "those without use another network than the others"
        if has_none
        else "the node with fewer ports is the bottleneck of every ring"
    )
    lacking = _lacking(ports)
    yield Finding(
        "error" if has_none else "warning",
        f"the number of {what} differs: {sentence(comparison)}{lacking}: {cost}",
        comparison.odd_hosts,
        _evidence(comparison, ports, what),
        (_FIX,),
    )


def _lacking(ports: Sequence[tuple[Surveyed, tuple[RdmaPort, ...]]]) -> str:
    """Ports by name that some nodes have and others do not."""
    names = {node.host: {hca.name_of(port) for port in members} for node, members in ports}
    every = set().union(*names.values())
    shared = set.intersection(*names.values())
    if not shared:
        return ""  # names that have nothing in common tell nothing
    parts = []
    for host, host_names in names.items():
        gone = sorted(every - host_names)
        if gone:
            parts.append(f"{named([host])} lacks {listed(gone, 4)}")
    return f" ({listed(parts, 3)})"


def _evidence(
    comparison: HostComparison[int], ports: Sequence[tuple[Surveyed, tuple[RdmaPort, ...]]], what: str
) -> tuple[Evidence, ...]:
    usual = comparison.usual
    expected = "the same on every node" if usual is None else str(usual.value)
    names = {node.host: listed((hca.name_of(port) for port in members), 16) for node, members in ports}
    return tuple(
        Evidence(
            group.hosts,
            what,
            f"{group.value}: {names[group.hosts[0]]}" if group.value else "0",
            expected,
            _FOLDER,
        )
        for group in comparison.groups
    )
