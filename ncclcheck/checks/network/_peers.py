"""The words for nodes that do not reach each other: one finding per explanation, with every direction as evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ncclcheck.checks.hosts import named, verb
from ncclcheck.checks.network._reach import (
    Blame,
    blame,
    both_ways,
    directions,
    elsewhere,
    not_probed,
    one_way,
)
from ncclcheck.checks.registry import Answer
from ncclcheck.model.finding import Evidence, Finding, Fix, NotApplicable
from ncclcheck.model.snapshot import Probe, ProbeOutcome, Snapshot

_LISTED_PORTS = 6
_LISTED = 16  # directions spelled out as evidence of one finding


def peer_answers(
    snapshot: Snapshot,
    outcome: ProbeOutcome,
    what: str,
    fix: Fix,
    tell: Callable[[Blame], Finding | None] = lambda _: None,
) -> Iterator[Answer]:
    """Yield findings for pairs whose both directions fail, at least one with `outcome`; `what` says what happens.

    `tell` may know a better finding for an explanation.
    """
    probed = directions(snapshot, "tcp")
    for explanation in blame(both_ways(probed, outcome), probed):
        yield tell(explanation) or finding(explanation, what, fix)
    if any(probe.outcome == outcome for probe in one_way(probed)):
        yield NotApplicable("only one direction fails: see peer-one-way")
    yield from _spare(snapshot, outcome, what)
    yield from not_probed(snapshot, "tcp")


def finding(explanation: Blame, what: str, fix: Fix, *, but: str = "") -> Finding:
    """Return the finding for one explanation. `but` is added where the node works otherwise."""
    return Finding(
        "error",
        f"{subject(explanation)}{_some_ports(explanation.directions)}{but}: {what}",
        explanation.hosts,
        evidence(explanation.directions),
        (fix,),
    )


def _some_ports(probes: Sequence[Probe]) -> str:
    """Return on which ports, where others of the same addresses answer; of many the lowest and the highest."""
    if not all(probe.closed_ports for probe in probes):
        return ""
    closed = sorted({port for probe in probes for port in probe.closed_ports})
    opened = sorted({port for probe in probes for port in probe.open_ports})
    return f" on some ports: {_ports(closed)} {verb(closed, 'fails', 'fail')}, {_ports(opened)} answered"


def _ports(ports: Sequence[int]) -> str:
    if len(ports) > _LISTED_PORTS:
        return f"{len(ports)} ports from {ports[0]} to {ports[-1]}"
    return ", ".join(map(str, ports))


def subject(explanation: Blame) -> str:
    """Which nodes do not reach which others, on which interface."""
    host = explanation.hosts[0]
    where = f"on {_interfaces(explanation.directions)}"
    sentences = {
        "everyone": f"no node can connect to any other node {where}",
        "cut-off": (
            f"{host} is isolated {where}: it cannot connect to other nodes, and they cannot connect to it"
        ),
        "unreachable": (
            f"no node can connect to {host} at {explanation.directions[0].address} "
            f"({explanation.directions[0].interface})"
        ),
        "mute": f"{host} cannot connect to any node {where}",
        "islands": (
            f"the group of {named(explanation.hosts)} and the group of {named(explanation.others)} cannot "
            f"connect to each other {where}, though the nodes within each group can"
        ),
        "pairs": f"{len(explanation.directions)} connections between {named(explanation.hosts)} fail {where}",
    }
    return sentences.get(explanation.kind) or _pair(explanation.directions)


def _pair(probes: Sequence[Probe]) -> str:
    first = probes[0]
    if len(probes) > 1:
        return f"{first.from_host} and {first.to_host} cannot connect to each other on {_interfaces(probes)}"
    return f"{first.from_host} cannot connect to {first.to_host} at {first.address} ({first.interface})"


def _interfaces(probes: Sequence[Probe]) -> str:
    return " / ".join(dict.fromkeys(probe.interface for probe in probes))


def evidence(probes: Sequence[Probe]) -> tuple[Evidence, ...]:
    """One piece per direction; of many, the first few and how many more there are."""
    pieces = tuple(
        Evidence(
            (probe.from_host, probe.to_host),
            f"{probe.kind} {probe.from_host} -> {probe.to_host} at {probe.address}:{probe.port} ({probe.interface})",
            f"{probe.outcome}: {probe.detail}" if probe.detail else probe.outcome,
            "ok",
            f"{probe.kind} probe of this run",
        )
        for probe in probes[:_LISTED]
    )
    if len(probes) <= _LISTED:
        return pieces
    rest = probes[_LISTED:]
    hosts = tuple(dict.fromkeys(host for probe in rest for host in (probe.from_host, probe.to_host)))
    return (*pieces, Evidence(hosts, "more directions", f"{len(rest)} more", "ok", "probes of this run"))


def _spare(snapshot: Snapshot, outcome: ProbeOutcome, what: str) -> Iterator[Finding]:
    """Interfaces that NCCL's bootstrap does not use: worth knowing, since NET/Socket takes every interface it may."""
    bad = tuple(probe for probe in elsewhere(snapshot, "tcp") if probe.outcome == outcome)
    if bad:
        names = ", ".join(dict.fromkeys(probe.interface for probe in bad))
        yield Finding(
            "info",
            f"not all nodes can connect to each other on {names} ({what}); NCCL does not bootstrap "
            "there, but its socket transport uses every interface that NCCL_SOCKET_IFNAME matches",
            tuple(dict.fromkeys(probe.to_host for probe in bad)),
            evidence(bad),
        )
