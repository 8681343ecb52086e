"""NC304 rdma-gid."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from ncclcheck.checks.hosts import not_reported, verb
from ncclcheck.checks.majority import HostComparison, compare, evidence, sentence
from ncclcheck.checks.rdma import _gids as gids
from ncclcheck.checks.rdma._gid_agreement import GidUse, disagreements
from ncclcheck.checks.rdma_ports import (
    NATIVE,
    ROCE,
    PortOn,
    Surveyed,
    by_hosts,
    file_of,
    not_surveyed,
    pieces,
    surveyed,
    without_devices,
)
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import Finding, Fix, NotApplicable, NotKnown, Severity
from ncclcheck.model.formats.prose import listed
from ncclcheck.model.hardware import Gid, RdmaPort
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.nccl import versions
from ncclcheck.nccl.number import number
from ncclcheck.nccl.rdma import hca
from ncclcheck.nccl.rdma.gid import choose_gid

_VARIABLE = "NCCL_IB_GID_INDEX"
_FAIL = "every connection through it fails (ibv_modify_qp failed)"


class _Fault(Struct, frozen=True):
    """What is wrong with the GID that NCCL takes on a port."""

    place: PortOn
    severity: Severity
    what: str
    observed: str
    source: str
    fix: Fix


@check(
    "NC304",
    "rdma-gid",
    "The address (GID) that NCCL uses on each RoCE port works between the nodes",
    needs=("rdma",),
)
def rdma_gid(snapshot: Snapshot) -> Iterator[Answer]:
    """On each RoCE port NCCL uses a GID that is set, belongs to this network namespace, and is not link-local.

    Between nodes the GIDs of one port have the same RoCE version and family, and are in the subnet of the majority;
    the index may differ, since it follows the order in which addresses were added. On native InfiniBand only the
    subnet prefix is judged.

    ## Why it matters
    The GID is the address of a RoCE connection. An index that is unset on a port, or two ends with different RoCE
    versions, give "ibv_modify_qp failed" or a timeout in the first collective. A link-local GID works only as long as
    there is no router between the nodes.

    ## How to fix
    With NCCL 2.21 or newer, leave NCCL_IB_GID_INDEX unset: NCCL finds the RoCE v2 address of IPv4 itself;
    NCCL_IB_ADDR_RANGE selects the subnet if a port has several, NCCL_IB_ADDR_FAMILY=AF_INET6 selects IPv6. Older
    versions use index 0 (RoCE v1) unless NCCL_IB_GID_INDEX, usually 3, is set. `show_gids` lists them.

    ## Source
    NCCL src/transport/net_ib.cc (ncclIbGetGidIndex), since 2.29 net_ib/connect.cc;
    /sys/class/infiniband/*/ports/*/gids and gid_attrs.
    """
    nodes = surveyed(snapshot)
    yield from without_devices(nodes)
    if any(surveyed_node.rdma.ports for surveyed_node in nodes) and not any(
        surveyed_node.active for surveyed_node in nodes
    ):
        yield NotApplicable("there is no ACTIVE InfiniBand or RoCE port that NCCL could use")
    faults: list[_Fault] = []
    used: list[GidUse] = []
    for node in nodes:
        unread = [hca.name_of(port) for port in node.selected if _is_unread(port)]
        if unread:
            yield NotKnown(f"the state or link layer of {listed(unread)} could not be read", (node.host,))
        for port in node.active:
            answer = _judged(node, port)
            if isinstance(answer, NotKnown):
                yield answer
            elif isinstance(answer, _Fault):
                faults.append(answer)
            elif answer is not None:
                used.append(GidUse(PortOn(node.host, port), answer, node.facts))
    yield from _findings(faults)
    yield from disagreements(used)
    yield from _native_subnets(nodes)
    yield from not_surveyed(snapshot)
    yield from not_reported(snapshot)


def _is_unread(port: RdmaPort) -> bool:
    if isinstance(port.state, Missing):
        return True
    return port.state == "ACTIVE" and isinstance(port.link_layer, Missing)


def _judged(node: Surveyed, port: RdmaPort) -> NotKnown | _Fault | Gid | None:
    """The GID, what is wrong with it, what is not known; None for a port that is not RoCE."""
    if port.link_layer != ROCE:
        return None
    name = hca.name_of(port)
    if not gids.is_table_readable(port):
        why = port.gids if isinstance(port.gids, Missing) else port.gid_table_length
        return NotKnown(f"the GIDs of {name}: {why}", (node.host,))
    choice = choose_gid(port, node.environment, node.version)
    if choice.index is None:
        if isinstance(port.gid_table_length, Missing):
            return NotKnown(f"which GID NCCL uses on {name}: {choice.reason}", (node.host,))
        return _fault(node, port, "error", f"no GID that NCCL can use: {choice.reason}", "none", None)
    entry = gids.entry_of(port, choice.index)
    if entry is None:
        if isinstance(port.gid_table_length, Missing):
            return NotKnown(f"whether GID {choice.index} of {name} is set", (node.host,))
        return _fault(
            node,
            port,
            "error",
            f"GID {choice.index} ({choice.reason}), which is unset: {_FAIL}",
            "unset",
            choice.index,
        )
    return _entry(node, port, entry, choice.reason)


def _entry(node: Surveyed, port: RdmaPort, entry: Gid, reason: str) -> NotKnown | _Fault | Gid:
    shown = f"{gids.address(entry)} ({gids.kind(entry)})"
    if isinstance(entry.type, Missing):
        typed = (
            [] if isinstance(port.gids, Missing) else [gid for gid in port.gids if isinstance(gid.type, str)]
        )
        if not typed and entry.type.missing != "error":
            return NotKnown(
                f"the RoCE version of GID {entry.index} of {hca.name_of(port)}: {entry.type}", (node.host,)
            )
        what = f"GID {entry.index}, {gids.address(entry)}, of another network namespace: {_FAIL}"
        return _fault(node, port, "error", what, str(entry.type), entry.index)
    if gids.is_link_local(entry):
        what = (
            f"GID {entry.index}, {shown}, which routers do not forward, and other nodes may be "
            "behind a router"
        )
        return _fault(node, port, "warning", what, shown, entry.index)
    if gids.roce_version(entry) == 1 and gids.better(port):
        what = (
            f"GID {entry.index}, {shown} ({reason}), which routers do not forward; the port also has RoCE v2"
        )
        return _fault(node, port, "warning", what, shown, entry.index)
    return entry


def _fault(
    node: Surveyed, port: RdmaPort, severity: Severity, what: str, observed: str, index: int | None
) -> _Fault:
    place = PortOn(node.host, port)
    file = "gids" if index is None else f"gids/{index}"
    return _Fault(place, severity, what, observed, file_of(port, file), _fix(node, port))


def _fix(node: Surveyed, port: RdmaPort) -> Fix:
    look = f"grep . /sys/class/infiniband/{port.device}/ports/{port.port}/gid_attrs/types/* 2>/dev/null"
    good = gids.better(port)
    forced = number(node.environment.get(_VARIABLE), -1, node.version) >= 0
    if not good:
        text = "give the port's network interface an IP address in this network namespace (RoCE v2 needs one)"
        listed_gids = () if isinstance(port.gids, Missing) else port.gids
        netdev = next((gid.netdev for gid in listed_gids if isinstance(gid.netdev, str)), "DEV")
        return Fix(text, (f"ip address show dev {netdev}", look))
    if forced and _finds_it_itself(node):
        return Fix(
            f"unset {_VARIABLE} on all nodes: NCCL {node.version} finds the RoCE v2 address itself",
            (f"unset {_VARIABLE}", look),
        )
    if gids.family(good[0]) == "IPv6":
        return Fix(
            "use IPv6", ("export NCCL_IB_ADDR_FAMILY=AF_INET6", look), {"NCCL_IB_ADDR_FAMILY": "AF_INET6"}
        )
    index = str(good[0].index)
    return Fix(
        f"use the RoCE v2 address {gids.address(good[0])}",
        (f"export {_VARIABLE}={index}", look),
        {_VARIABLE: index},
        "the index must be that of the RoCE v2 address on every port of every node",
    )


def _finds_it_itself(node: Surveyed) -> bool:
    return versions.parse(node.version) >= versions.GID_CHOSEN_SINCE


def _findings(faults: Sequence[_Fault]) -> Iterator[Finding]:
    """One finding per kind of fault, however many ports and hosts have it."""
    groups: dict[tuple[str, Severity], list[_Fault]] = {}
    for fault in faults:
        groups.setdefault((_kind(fault), fault.severity), []).append(fault)
    for (_, severity), group in groups.items():
        where = by_hosts((member.place.host, member.place.name) for member in group)
        more = f" (the same on {len(group) - 1} more)" if len(group) > 1 else ""
        yield Finding(
            severity,
            f"RoCE {verb(group, 'port', 'ports')} {where}: NCCL would use {group[0].what}{more}",
            tuple(dict.fromkeys(member.place.host for member in group)),
            pieces(
                (
                    member.place,
                    member.observed,
                    "a RoCE v2 address of this node that is not link-local",
                    member.source,
                )
                for member in group
            ),
            (group[0].fix,),
        )


def _kind(fault: _Fault) -> str:
    """What makes faults the same: all but the address."""
    return fault.what.partition(",")[0]


def _native_subnets(nodes: Sequence[Surveyed]) -> Iterator[Finding]:
    """InfiniBand ports of the same name with another subnet prefix are in another fabric."""
    values: dict[str, list[tuple[str, str]]] = {}
    for node in nodes:
        for port in node.active:
            prefix = gids.subnet_prefix(port) if port.link_layer == NATIVE else None
            if prefix is not None:
                values.setdefault(hca.name_of(port), []).append((node.host, prefix))
    groups: dict[HostComparison[str], list[str]] = {}
    for name, value in values.items():
        comparison = compare(value)
        if comparison.differs:
            groups.setdefault(comparison, []).append(name)
    for comparison, names in groups.items():
        yield Finding(
            "warning",
            f"the InfiniBand subnet prefix of {listed(names)} differs: {sentence(comparison)}: ports of different "
            "subnets reach each other only through an InfiniBand router",
            comparison.odd_hosts,
            evidence(
                comparison, f"subnet prefix of {listed(names)}", "/sys/class/infiniband/*/ports/*/gids/0"
            ),
            (
                Fix(
                    "check which fabric the port is connected to, and the subnet prefix of its subnet manager",
                    ("grep . /sys/class/infiniband/*/ports/*/gids/0", "sudo sminfo"),
                ),
            ),
        )
