"""NC301 rdma-port-down."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from ncclcheck.checks.hosts import named, not_reported, verb
from ncclcheck.checks.rdma_ports import (
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
from ncclcheck.model.hardware import RdmaPort
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.nccl.rdma import hca

ACTIVE = "ACTIVE"
_HALF_UP = ("INIT", "ARMED")  # the link is there, and no subnet manager has brought the port up
_NO_LINK = ("Disabled", "Polling", "Sleep")  # linux/ib_verbs.h: switched off, or nothing at the other end
_Why: TypeAlias = Literal["named", "elsewhere", "half-up", "failing", "alone", "spare"]
_SEVERITIES: Mapping[_Why, Severity] = {
    "named": "error",
    "elsewhere": "error",
    "half-up": "error",
    "failing": "error",
    "alone": "warning",
    "spare": "info",
}
_COST = "NCCL skips it without an error, and the traffic of its GPU takes a longer path"


class _Down(Struct, frozen=True):
    """A port that is not ACTIVE, why that matters, and the hosts on which the same port is ACTIVE."""

    place: PortOn
    why: _Why
    elsewhere: tuple[str, ...] = ()


@check(
    "NC301",
    "rdma-port-down",
    "The RDMA ports that NCCL would use are ACTIVE",
    needs=("rdma",),
    alike=("environment", "nccl", "rdma", "software"),
)
def rdma_port_down(snapshot: Snapshot) -> Iterator[Answer]:
    """Every RDMA port that NCCL_IB_HCA lets NCCL use is ACTIVE, as it is on the other nodes.

    A port without a link (no cable) may be unused on purpose: it is only a warning, unless the port is ACTIVE on the
    other nodes or NCCL_IB_HCA names it. If no node has a link there, it is information.

    ## Why it matters
    NCCL skips a port that is not ACTIVE, without an error. The GPU next to it then sends through another GPU's card,
    so the job is slower. If no port is left, NCCL uses sockets. Nodes with different numbers of ports pair them in
    different ways.

    ## How to fix
    `ibstat` or `rdma link` shows state and physical state. Disabled: switch the port on (`ip link set DEV up` on
    Ethernet). Polling: cable, transceiver or switch port. LinkUp with INIT or ARMED: no subnet manager answers.
    NCCL_IB_HCA can exclude a port that is unused on purpose.

    ## Source
    NCCL src/transport/net_ib.cc (ncclIbInit: only IBV_PORT_ACTIVE); /sys/class/infiniband/*/ports/*/state and
    phys_state, drivers/infiniband/core/sysfs.c.
    """
    nodes = surveyed(snapshot)
    yield from without_devices(nodes)
    mattering = [(node, port) for node in nodes for port in _mattering(node)]
    if any(node.rdma.ports for node in nodes) and not mattering:
        yield NotApplicable("NCCL is told to use none of the RDMA ports")
    unread = [(node.host, hca.name_of(port)) for node, port in mattering if _is_unread(port)]
    if unread:
        yield NotKnown(f"the state of {by_hosts(unread)} could not be read")
    yield from _findings(_down_ports(nodes, mattering))
    yield from not_surveyed(snapshot)
    yield from not_reported(snapshot)


def _mattering(node: Surveyed) -> tuple[RdmaPort, ...]:
    """The ports NET/IB would take, and those of EFA, which their plug-in takes."""
    return node.selected + node.others


def _is_unread(port: RdmaPort) -> bool:
    return isinstance(port.state, Missing)


def _down_ports(nodes: Sequence[Surveyed], mattering: Sequence[tuple[Surveyed, RdmaPort]]) -> list[_Down]:
    down = [(node, port) for node, port in mattering if not _is_unread(port) and port.state != ACTIVE]
    if not down:
        return []
    like: dict[tuple[str, int], list[tuple[str, RdmaPort]]] = {
        (port.device, port.port): [] for _, port in down
    }
    for node in nodes:
        for port in node.rdma.ports:
            if (port.device, port.port) in like:
                like[port.device, port.port].append((node.host, port))
    return [
        _judged(node, port, _elsewhere(like[port.device, port.port], node.host, port)) for node, port in down
    ]


def _elsewhere(like: Sequence[tuple[str, RdmaPort]], host: str, port: RdmaPort) -> dict[str, str]:
    """The state of the same port on the other nodes; a port of that name on another kind of card is not the same."""
    return {
        name: rdma_port.state
        for name, rdma_port in like
        if name != host and isinstance(rdma_port.state, str) and _may_be_alike(rdma_port, port)
    }


def _may_be_alike(port: RdmaPort, rdma_port: RdmaPort) -> bool:
    pairs = (
        (port.board_id, rdma_port.board_id),
        (port.hca_type, rdma_port.hca_type),
        (port.link_layer, rdma_port.link_layer),
    )
    return all(left == right for left, right in pairs if isinstance(left, str) and isinstance(right, str))


def _judged(node: Surveyed, port: RdmaPort, others: Mapping[str, str]) -> _Down:
    place = PortOn(node.host, port)
    active = tuple(host for host, state in others.items() if state == ACTIVE)
    if active and 2 * len(active) >= len(others):
        return _Down(place, "elsewhere", active)
    if _is_named(node, port):
        return _Down(place, "named", active)
    if port.state in _HALF_UP:
        return _Down(place, "half-up", active)
    if not isinstance(port.phys_state, Missing) and port.phys_state not in _NO_LINK:
        return _Down(place, "failing", active)
    is_spare = bool(others) and not active and any(rdma_port.state == ACTIVE for rdma_port in node.rdma.ports)
    return _Down(place, "spare" if is_spare else "alone", active)


def _is_named(node: Surveyed, port: RdmaPort) -> bool:
    """True if NCCL_IB_HCA lists this very device, and not merely a prefix of its name."""
    pattern = hca.parse(node.environment.get("NCCL_IB_HCA"), node.version)
    return not pattern.exclude and any(entry.name == port.device for entry in pattern.entries)


def _findings(downs: Sequence[_Down]) -> Iterator[Finding]:
    """One finding per reason and set of ports, so that what is the same on many hosts is reported once."""
    groups: dict[tuple[_Why, str], list[_Down]] = {}
    for down in downs:
        groups.setdefault((down.why, _state(down.place.port)), []).append(down)
    for (why, state), group in groups.items():
        hosts = tuple(dict.fromkeys(member.place.host for member in group))
        where = by_hosts((member.place.host, member.place.name) for member in group)
        names = {member.place.name for member in group}
        yield Finding(
            _SEVERITIES[why],
            f"RDMA {verb(names, 'port', 'ports')} {where} {verb(names, 'is', 'are')} {state}{_because(why, group)}",
            hosts,
            pieces(
                (
                    member.place,
                    _state(member.place.port),
                    "ACTIVE (LinkUp)",
                    file_of(member.place.port, "state"),
                )
                for member in group
            ),
            (_fix(why, group),),
        )


def _because(why: _Why, ports_down: Sequence[_Down]) -> str:
    if why == "elsewhere":
        active = list(dict.fromkeys(host for member in ports_down for host in member.elsewhere))
        return f", and ACTIVE on {named(active)}: {_COST}"
    if why == "named":
        return f", though NCCL_IB_HCA names {'it' if len(ports_down) == 1 else 'them'}: {_COST}"
    if why == "half-up":
        return f": it has a link, but no subnet manager has activated it. {_COST}"
    if why == "failing":
        return f": its link does not come up. {_COST}"
    if why == "spare":
        return " on every node: no node has a link there, so it is probably unused on purpose"
    return f": it has no link (switched off, or no cable). If it should be used, {_COST}"


def _fix(why: _Why, ports_down: Sequence[_Down]) -> Fix:
    first = ports_down[0].place.port
    commands = [f"ibstat {first.device} {first.port}", f"cat {file_of(first, 'phys_state')}"]
    if first.link_layer == "Ethernet":
        commands = [f"rdma link show {first.device}/{first.port}", f"cat {file_of(first, 'phys_state')}"]
    names = listed(member.place.name for member in ports_down)
    if why in ("alone", "spare"):
        return Fix(
            f"connect the cable or enable {names}, or exclude it with NCCL_IB_HCA",
            tuple(commands),
        )
    if why == "half-up":
        return Fix("check that a subnet manager runs in this fabric", (*commands, "sudo sminfo"))
    return Fix(f"bring {names} up: check the cable, the transceiver and the switch port", tuple(commands))


def _state(port: RdmaPort) -> str:
    state = port.state if isinstance(port.state, str) else "not known"
    return f"{state} ({port.phys_state})" if isinstance(port.phys_state, str) else state
