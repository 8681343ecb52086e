"""NC311 rdma-mtu-differs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ncclcheck.checks.hosts import named, not_reported
from ncclcheck.checks.majority import compare
from ncclcheck.checks.rdma_ports import (
    NATIVE,
    PortOn,
    by_hosts,
    not_surveyed,
    pieces,
    surveyed,
    without_devices,
)
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import Finding, Fix, NotApplicable, NotKnown
from ncclcheck.model.snapshot import Snapshot


@check(
    "NC311",
    "rdma-mtu-differs",
    "All RDMA ports that NCCL uses have the same MTU",
    needs=("rdma",),
    alike=("environment", "nccl", "rdma", "software"),
)
def rdma_mtu_differs(snapshot: Snapshot) -> Iterator[Answer]:
    """The active MTU of the ports that NCCL may use is the same on every port of every node, per kind of network.

    The active MTU is the largest packet that the two ends of a connection can agree on: 256 to 4096 bytes. On
    InfiniBand the subnet manager sets it, on RoCE it follows from the MTU of the network interface.

    ## Why it matters
    Current NCCL uses the smaller MTU of the two ends, so one port with a small MTU adds overhead to all its
    connections. With older versions, other programs, or switches that only pass the smaller size, larger packets are
    lost: the connection succeeds, and the first large message never arrives.

    ## How to fix
    RoCE: set the same MTU on all interfaces of the rail and on the switch ports (`ip link set IFACE mtu 9000` gives
    4096). InfiniBand: check the partition's MTU in the subnet manager, and the port with `ibv_devinfo -v`.

    ## Source
    libibverbs, ibv_query_port (active_mtu), asked on each node; NCCL src/transport/net_ib/connect.cc (the smaller
    active_mtu of the two ends); Linux, include/rdma/ib_addr.h (iboe_get_mtu).
    """
    nodes = surveyed(snapshot)
    yield from without_devices(nodes)
    ports = [PortOn(node.host, port) for node in nodes for port in node.active]
    for place in ports:
        if isinstance(place.port.active_mtu, Missing):
            yield NotKnown(f"active MTU of {place.name}: {place.port.active_mtu}", (place.host,))
    for native in (True, False):
        yield from _compared([on for on in ports if (on.port.link_layer == NATIVE) is native])
    if nodes and not ports:
        yield NotApplicable(
            f"{named([surveyed_node.host for surveyed_node in nodes])}: NCCL uses no RDMA port there"
        )
    yield from not_surveyed(snapshot)
    yield from not_reported(snapshot)


def _compared(ports: Sequence[PortOn]) -> Iterator[Finding]:
    known = [(port, port.port.active_mtu) for port in ports if not isinstance(port.port.active_mtu, Missing)]
    comparison = compare((str(place), mtu) for place, (_, mtu) in enumerate(known))
    if not comparison.differs:
        return
    usual = max(mtu for _, mtu in known) if comparison.usual is None else comparison.usual.value
    odd = [(on, mtu) for on, mtu in known if mtu != usual]
    hosts = tuple(dict.fromkeys(on.host for on, _ in odd))
    tie = " (no majority)" if comparison.usual is None else ""
    texts = [
        f"{mtu} on {by_hosts((on.host, on.name) for on, port_mtu in odd if port_mtu == mtu)}"
        for mtu in sorted({port_mtu for _, port_mtu in odd})
    ]
    yield Finding(
        "warning",
        f"the active MTU of RDMA ports differs: {', '.join(texts)}, where the others have "
        f"{usual}{tie}: large messages are sent in smaller packets, or are lost",
        hosts,
        pieces((on, str(mtu), str(usual), "ibv_query_port, active_mtu") for on, mtu in odd),
        (
            Fix(
                "set the same MTU on the interfaces and switch ports (RoCE), or in the subnet manager (InfiniBand)",
                (f"ibv_devinfo -v -d {odd[0][0].port.device} | grep mtu", "ip -brief link"),
            ),
        ),
    )
