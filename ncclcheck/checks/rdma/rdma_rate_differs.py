"""NC303 rdma-rate-differs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from ncclcheck.checks.hosts import named, not_reported, verb
from ncclcheck.checks.majority import HostComparison, compare, evidence, sentence
from ncclcheck.checks.rdma_ports import (
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

_RATE_FILES = "/sys/class/infiniband/*/ports/*/rate"
_COST = "a ring is as fast as its slowest card"


class _Odd(Struct, frozen=True):
    """A port whose rate is not that of its siblings: the ports of the same kind of card on the node."""

    place: PortOn
    rate: float
    usual: tuple[float, ...]  # several in a tie
    siblings: tuple[str, ...]


@check(
    "NC303",
    "rdma-rate-differs",
    "RDMA ports of one kind run at the same rate, on a node and between nodes",
    needs=("rdma",),
    alike=("environment", "nccl", "rdma", "software"),
)
def rdma_rate_differs(snapshot: Snapshot) -> Iterator[Answer]:
    """Every ACTIVE port that NCCL would use runs at the rate of its siblings and of the same port on the other nodes.

    Siblings are ports of the same card model and link layer: a storage or management card of another model may be
    slower. The expected rate is that of the majority; without a majority the finding says so.

    ## Why it matters
    A cable or transceiver that is damaged makes a link come up at fewer lanes or a lower speed, without any error.
    Collectives run in rings and trees over all cards, so one port at half the rate halves the whole job.

    ## How to fix
    Reseat or replace the cable, check the switch port's settings and the firmware; `ibstat` and `mlxlink -d DEV` show
    lanes, speed and errors of the link.

    ## Source
    /sys/class/infiniband/*/ports/*/rate: width times speed as negotiated (drivers/infiniband/core/sysfs.c).
    """
    nodes = surveyed(snapshot)
    yield from without_devices(nodes)
    ports = {node.host: _running(node) for node in nodes}
    if any(node.rdma.ports for node in nodes) and not any(ports.values()):
        yield NotApplicable("there is no ACTIVE RDMA port that NCCL could use")
    for host, members in ports.items():
        unread = [hca.name_of(port) for port in members if isinstance(port.rate_gbps, Missing)]
        if unread:
            yield NotKnown(f"the rate of {listed(unread)} could not be read", (host,))
    for node in nodes:
        stateless = [hca.name_of(port) for port in node.selected if isinstance(port.state, Missing)]
        if stateless:
            yield NotKnown(f"the state of {listed(stateless)} could not be read", (node.host,))
    odd = [port for host, members in ports.items() for port in _within(host, members)]
    yield from _findings(odd)
    yield from _between(ports, {(port.place.host, port.place.name) for port in odd})
    yield from not_surveyed(snapshot)
    yield from not_reported(snapshot)


def _running(node: Surveyed) -> tuple[RdmaPort, ...]:
    return node.active + tuple(port for port in node.others if port.state == "ACTIVE")


def _rate(port: RdmaPort) -> float | None:
    return None if isinstance(port.rate_gbps, Missing) else port.rate_gbps


def _kind(port: RdmaPort) -> tuple[str, ...]:
    """What makes ports comparable: link layer and card model."""
    return tuple(
        "" if isinstance(value, Missing) else value
        for value in (port.link_layer, port.hca_type, port.board_id)
    )


def _within(host: str, ports: Sequence[RdmaPort]) -> Iterator[_Odd]:
    kinds: dict[tuple[str, ...], list[tuple[RdmaPort, float]]] = {}
    for port in ports:
        rate = _rate(port)
        if rate is not None:
            kinds.setdefault(_kind(port), []).append((port, rate))
    for kind in kinds.values():
        comparison = compare((hca.name_of(port), rate) for port, rate in kind)
        if not comparison.differs:
            continue
        best = max(group.value for group in comparison.groups)
        for port, rate in kind:
            name = hca.name_of(port)
            # Without a majority nobody is the odd one out, but the slower ones are where to look.
            is_odd = rate < best if comparison.tie else name in comparison.odd_hosts
            if is_odd:
                others = [group for group in comparison.groups if group.value != rate]
                usual = others if comparison.tie else others[:1]
                yield _Odd(
                    PortOn(host, port),
                    rate,
                    tuple(group.value for group in usual),
                    tuple(name for group in usual for name in group.hosts),
                )


def _findings(odd: Iterable[_Odd]) -> Iterator[Finding]:
    """One finding per port and rate, however many hosts have it."""
    groups: dict[tuple[str, float, tuple[float, ...]], list[_Odd]] = {}
    for port in odd:
        groups.setdefault((port.place.name, port.rate, port.usual), []).append(port)
    for (name, rate, usual), group in groups.items():
        hosts = tuple(port.place.host for port in group)
        tie = " (no majority)" if len(group[0].siblings) < 2 else ""  # noqa: PLR2004 - one port against one
        usual_text = " and ".join(_gbit(usual_rate) for usual_rate in usual)
        yield Finding(
            "warning",
            f"{name} on {named(hosts)} runs at {_gbit(rate)} ({_lanes(group[0].place.port)}) where "
            f"{listed(group[0].siblings)}, {verb(group[0].siblings, 'a card', 'cards')} of the same model, "
            f"{verb(group[0].siblings, 'runs', 'run')} at {usual_text}{tie}: {_COST}",
            hosts,
            pieces(
                (port.place, _observed(port.place.port), usual_text, file_of(port.place.port, "rate"))
                for port in group
            ),
            (_fix(group[0].place.port),),
        )


def _between(ports: Mapping[str, Sequence[RdmaPort]], reported: set[tuple[str, str]]) -> Iterator[Finding]:
    """The same port on different nodes; ports with the same answer together."""
    values: dict[str, list[tuple[str, float]]] = {}
    first: dict[str, RdmaPort] = {}
    for host, members in ports.items():
        for port in members:
            rate = _rate(port)
            name = hca.name_of(port)
            if rate is not None and (host, name) not in reported:
                values.setdefault(f"{name}/{port.link_layer}", []).append((host, rate))
                first.setdefault(f"{name}/{port.link_layer}", port)
    if values and all(len(value) == 1 for value in values.values()):
        values = {"": _usual_rates(ports)}  # names that have nothing in common
    groups: dict[HostComparison[float], list[str]] = {}
    for key, value in values.items():
        comparison = compare(value)
        if comparison.differs:
            groups.setdefault(comparison, []).append(key)
    for comparison, keys in groups.items():
        names = [hca.name_of(first[key]) for key in keys if key in first]
        subject = listed(names) if names else "most RDMA ports"
        yield Finding(
            "warning",
            f"the rate of {subject} differs between nodes: {sentence(comparison, _gbit)}: {_COST}",
            comparison.odd_hosts,
            evidence(comparison, f"rate of {subject}", _source(keys, first), _gbit),
            (_fix(first.get(keys[0])),),
        )


def _source(keys: Sequence[str], first: Mapping[str, RdmaPort]) -> str:
    return file_of(first[keys[0]], "rate") if len(keys) == 1 and keys[0] in first else _RATE_FILES


def _usual_rates(ports: Mapping[str, Sequence[RdmaPort]]) -> list[tuple[str, float]]:
    found = []
    for host, members in ports.items():
        rates = [(hca.name_of(port), rate) for port in members if (rate := _rate(port)) is not None]
        if rates:
            found.append((host, compare(rates).groups[0].value))
    return found


def _gbit(rate: float) -> str:
    return f"{rate:g} Gbit/s"


def _lanes(port: RdmaPort) -> str:
    known = [value for value in (port.width, port.speed) if isinstance(value, str)]
    return " ".join(known) or "width and speed not known"


def _observed(port: RdmaPort) -> str:
    return f"{_gbit(_rate(port) or 0.0)} ({_lanes(port)})"


def _fix(port: RdmaPort | None) -> Fix:
    text = "reseat or replace the cable of the slower port, and compare the settings of its switch port"
    if port is None:
        return Fix(text, (f"grep . {_RATE_FILES}",))
    return Fix(text, (f"cat {file_of(port, 'rate')}", f"sudo mlxlink -d {port.device} -p {port.port}"))
