"""Do the GIDs that NCCL takes on the same port of different nodes fit together: version, family, subnet?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from ncclcheck.checks.majority import HostComparison, compare, evidence, sentence
from ncclcheck.checks.rdma import _gids as gids
from ncclcheck.checks.rdma_ports import PortOn
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import NodeFacts
from ncclcheck.model.finding import Finding, Fix
from ncclcheck.model.formats.prose import listed
from ncclcheck.model.hardware import Gid

_GIDS = "/sys/class/infiniband/*/ports/*/gids and gid_attrs/types"
_LOOK = "grep . /sys/class/infiniband/*/ports/*/gid_attrs/types/* 2>/dev/null"


class GidUse(Struct, frozen=True):
    """A GID that NCCL takes on a RoCE port."""

    place: PortOn
    gid: Gid
    facts: NodeFacts


def disagreements(used: Sequence[GidUse]) -> Iterator[Finding]:
    """Yield the mismatches between nodes, ports with the same answer together."""
    by_port: dict[str, list[GidUse]] = {}
    for use in used:
        by_port.setdefault(use.place.name, []).append(use)
    kinds: dict[HostComparison[str], list[str]] = {}
    subnets: dict[HostComparison[str], list[str]] = {}
    tied: dict[str, HostComparison[str]] = {}
    agrees = False
    for name, uses in by_port.items():
        comparison = compare((use.place.host, gids.kind(use.gid)) for use in uses)
        if comparison.differs:
            kinds.setdefault(comparison, []).append(name)
            continue
        places = [(use.place.host, subnet) for use in uses if (subnet := _subnet(use)) is not None]
        where = compare(places)
        if not where.differs:
            agrees = agrees or len(places) > 1
        elif not where.tie or _could_agree(uses, where):
            subnets.setdefault(where, []).append(name)
        else:
            tied[name] = where
    if agrees:  # one subnet per rail, then: a rail whose nodes have nothing in common is at odds with that
        for name, where in tied.items():
            subnets.setdefault(where, []).append(name)
    yield from (_of_kind(comparison, names) for comparison, names in kinds.items())
    yield from (_of_subnet(comparison, names) for comparison, names in subnets.items())


def _subnet(used: GidUse) -> str | None:
    interfaces = used.facts.interfaces
    return None if isinstance(interfaces, Missing) else gids.subnet(used.gid, interfaces)


def _could_agree(uses: Sequence[GidUse], where: HostComparison[str]) -> bool:
    """Return True if a port has another RoCE v2 address in the subnet of another node that NCCL did not choose.

    Where every node has a subnet of its own and nothing else, the network is routed by design.
    """
    home = {host: group.value for group in where.groups for host in group.hosts}
    for used in uses:
        interfaces = used.facts.interfaces
        if isinstance(interfaces, Missing):
            continue
        for gid in gids.better(used.place.port):
            found = gids.subnet(gid, interfaces)
            if found and found != home.get(used.place.host) and found in home.values():
                return True
    return False


def _of_kind(comparison: HostComparison[str], names: Sequence[str]) -> Finding:
    return Finding(
        "error",
        f"the GIDs that NCCL uses on {listed(names)} are incompatible: {sentence(comparison)}: such "
        "ports cannot "
        "connect to each other (ibv_modify_qp failed, or a timeout in the first collective)",
        comparison.odd_hosts,
        evidence(comparison, f"GID of {listed(names)}", _GIDS),
        (
            Fix(
                "make every node use the same kind: unset NCCL_IB_GID_INDEX (NCCL 2.21 and newer "
                "find the RoCE v2 address themselves), and give the interface an address of that "
                "family where it has none",
                ("unset NCCL_IB_GID_INDEX", _LOOK),
            ),
        ),
    )


def _of_subnet(comparison: HostComparison[str], names: Sequence[str]) -> Finding:
    subnet = comparison.groups[0].value
    return Finding(
        "warning",
        f"the GIDs that NCCL uses on {listed(names)} are in different subnets: "
        f"{sentence(comparison)}: they reach "
        "each other only if there is a router between them",
        comparison.odd_hosts,
        evidence(comparison, f"subnet of the GID of {listed(names)}", _GIDS),
        (
            Fix(
                "set the subnet that NCCL uses if a port has several addresses, or correct the address",
                (f"export NCCL_IB_ADDR_RANGE={subnet}", "ip -brief address"),
                {"NCCL_IB_ADDR_RANGE": subnet},
                "with a subnet per rail the range must cover all of them",
            ),
        ),
    )
