"""What nodes measured of each other: connections, round trips, transfers, clocks."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from ncclcheck.measure.links.rounds import plan_rounds
from ncclcheck.model.snapshot import (
    Measured,
    Probe,
    ProbeKind,
    ProbeOutcome,
)
from tests.fact_builders import address_of, host_of


def probe(kind: ProbeKind, source: int, target: int, outcome: ProbeOutcome = "ok") -> Probe:
    """One attempt from one node rank to eth0 of another."""
    return Probe(kind, host_of(source), host_of(target), "eth0", address_of(target), 40000 + target, outcome)


def timed_probes(
    nnodes: int, name: str = "eth0", network: str = "10.0.0", gbit_s: float = 94.0
) -> tuple[Probe, ...]:
    """The measured round trips and transfers of one network, whose addresses are network.1 and so on."""
    shifts = plan_rounds(nnodes, 1).shifts if nnodes > 1 else ()
    pairs = [(source, (source + shift) % nnodes) for shift in shifts for source in range(nnodes)]
    return tuple(
        timed_probe("latency", source, target, 25.0 + number % 3, name, network)
        for number, (source, target) in enumerate(dict.fromkeys(pairs))
    ) + tuple(
        timed_probe("bandwidth", source, target, gbit_s * (1 - 0.01 * (number % 4)), name, network)
        for number, (source, target) in enumerate(pairs)
    )


def clock_probes(nnodes: int, **ahead_us: float) -> tuple[Probe, ...]:
    """The compared clocks of neighbours, of which those named are that far ahead of the right time."""
    pairs = [(source, (source + 1) % nnodes) for source in range(nnodes) if nnodes > 1]
    return tuple(
        timed_probe(
            "clock",
            source,
            target,
            ahead_us.get(host_of(target), 0.0) - ahead_us.get(host_of(source), 0.0) + 3.0,
            least=50.0,
        )
        for source, target in pairs
    )


def timed_probe(
    kind: ProbeKind,
    source: int,
    target: int,
    value: float,
    name: str = "eth0",
    network: str = "10.0.0",
    **changes: Any,
) -> Probe:
    """One measurement from one node rank to another, of which nothing but the network was the limit."""
    measured = Measured(
        4, 0.1, f"{network}.{source + 1}", cpu_share=0.3, core_share=0.4, segments=80_000, resent=7
    )
    if kind == "latency":
        measured = Measured(30, 0.001, f"{network}.{source + 1}", least=value - 1, segments=34, resent=0)
    unit = "Gbit/s" if kind == "bandwidth" else "us"
    return replace(
        probe(kind, source, target),
        interface=name,
        address=f"{network}.{target + 1}",
        value=value,
        unit=unit,
        measured=replace(measured, **changes),
    )


def loss_probe(source: int, target: int, lost: int, sent: int = 600) -> Probe:
    """The small packets from one node rank to another, of which so many got lost."""
    measured = Measured(sent, 0.3, f"10.0.0.{source + 1}", segments=sent, resent=lost)
    return replace(probe("loss", source, target), value=100 * lost / sent, unit="%", measured=measured)


def both_ways(first: str, second: str) -> tuple[tuple[str, str], ...]:
    """The two directions of a pair."""
    return (first, second), (second, first)
