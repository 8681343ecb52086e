"""What of a network is slow, as its transfers tell it, and what a collective then waits for."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ncclcheck.measure.links.slow_parts import slow_parts, slowest_part
from ncclcheck.model.snapshot import Measured, Probe
from tests.fact_builders import host_of
from tests.probe_builders import timed_probes


def network(nodes: int, gbit_s: float = 1.0) -> tuple[Probe, ...]:
    return tuple(probe for probe in timed_probes(nodes, gbit_s=gbit_s) if probe.kind == "bandwidth")


def slowed(
    probes: tuple[Probe, ...], gbit_s: float, *, source: int | None = None, target: int | None = None
) -> tuple[Probe, ...]:
    """The transfers from `source` and to `target` carry so much; None: from, or to, whichever node."""
    return tuple(
        replace(probe, value=gbit_s)
        if (source is None or probe.from_host == host_of(source))
        and (target is None or probe.to_host == host_of(target))
        else probe
        for probe in probes
    )


def limited(probe: Probe) -> Probe:
    return replace(probe, measured=replace(some_measured(probe), cpu_share=1.0))


def some_measured(probe: Probe) -> Measured:
    assert probe.measured is not None
    return probe.measured


@pytest.mark.parametrize("nodes", [2, 3, 4, 9])
def test_equal_nodes_have_no_slow_part(nodes: int) -> None:
    assert slow_parts(network(nodes)).transfers() == ()
    assert slowest_part(network(nodes)) is None


@pytest.mark.parametrize("nodes", [3, 4, 9])
def test_a_slow_node_is_the_slowest_part_with_its_own_figures(nodes: int) -> None:
    probes = slowed(slowed(network(nodes), 0.2, source=1), 0.1, target=1)
    part = slowest_part(probes)
    assert part is not None
    assert part.where == f"to {host_of(1)}"
    assert (part.throughput.median, part.throughput.high) == (0.1, 0.1)
    assert part.usual == pytest.approx(1.0, rel=0.05)
    assert {host_of(1)} == set.intersection(*(set(pair) for pair in slow_parts(probes).transfers()))


def test_a_slow_way_is_the_slowest_part() -> None:
    part = slowest_part(slowed(network(4), 0.1, source=0, target=2))
    assert part is not None
    assert (part.where, part.throughput.transfers) == (f"from {host_of(0)} to {host_of(2)}", 1)


def test_of_two_nodes_one_direction_can_be_the_slow_one() -> None:
    part = slowest_part(slowed(network(2), 0.3, source=1))
    assert part is not None
    assert part.where == f"from {host_of(1)} to {host_of(0)}"
    assert slowest_part(slowed(network(2), 0.6, source=1)) is None
    assert slowest_part(slowed(network(2), 0.3)) is None


def test_what_the_cpu_limited_or_what_came_to_nothing_is_not_slow() -> None:
    probes = slowed(network(4), 0.1, source=2)
    assert slow_parts(map(limited, probes)).transfers() == ()
    assert slow_parts(replace(probe, value=None) for probe in probes).values == {}
    assert slowest_part(()) is None
