"""Which transfers are measured again, one direction at a time, how often, and that the best counts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ncclcheck.measure.links.repeats import (
    MOST_ROUNDS,
    Transfer,
    late_again,
    rounds_again,
    suspicious,
    with_the_best,
)
from ncclcheck.measure.links.slow_parts import slow_parts
from ncclcheck.model.snapshot import Probe
from tests.fact_builders import host_of
from tests.measure.links.test_network_rates import places
from tests.measure.links.test_slow_parts import network, slowed
from tests.probe_builders import timed_probes

transfers_of_some = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 9), st.integers(0, 9)).filter(lambda one: one[1] != one[2]),
    unique=True,
)


def again(probes: tuple[Probe, ...], value: float, found: tuple[Transfer, ...]) -> tuple[Probe, ...]:
    """The probes after these ways were measured again, with that value."""
    ways = {(host_of(source), host_of(target)) for _, source, target in found}
    return with_the_best(
        probes, [once(probe, value) for probe in probes if (probe.from_host, probe.to_host) in ways]
    )


def once(probe: Probe, value: float) -> Probe:
    assert probe.measured is not None
    return replace(probe, value=value, measured=replace(probe.measured, transfers=1))


@pytest.mark.parametrize("nodes", [2, 3, 4, 9])
def test_of_healthy_nodes_nothing_is_measured_again(nodes: int) -> None:
    assert suspicious(network(nodes), [places(nodes)]) == ()


def test_one_bad_transfer_is_measured_again_and_then_forgotten() -> None:
    probes = slowed(network(4), 0.1, source=0, target=2)
    found = suspicious(probes, [places(4)])
    assert found == ((0, 0, 2),)
    better = again(probes, 0.95, found)
    assert suspicious(better, [places(4)]) == ()
    assert slow_parts(better).transfers() == ()


def test_a_slow_way_is_tried_three_times_and_stays_slow() -> None:
    probes = slowed(network(4), 0.1, source=0, target=2)
    for tries in (2, 3):
        found = suspicious(probes, [places(4)])
        assert found == ((0, 0, 2),)
        probes = again(probes, 0.09, found)
        (way,) = [probe for probe in probes if (probe.from_host, probe.to_host) == (host_of(0), host_of(2))]
        assert way.measured is not None
        assert (way.value, way.measured.transfers) == (0.1, tries)
    assert suspicious(probes, [places(4)]) == ()
    assert slow_parts(probes).transfers() == ((host_of(0), host_of(2)),)


def test_a_slow_node_is_tried_twice_with_each_partner() -> None:
    probes = slowed(slowed(network(4), 0.1, source=3), 0.1, target=3)
    found = suspicious(probes, [places(4)])
    assert set(found) == {(0, 3, one) for one in range(3)} | {(0, one, 3) for one in range(3)}
    assert suspicious(again(probes, 0.1, found), [places(4)]) == ()


def test_what_only_suffered_from_a_slow_node_is_cleared() -> None:
    probes = slowed(slowed(network(4), 0.1, source=3), 0.3, target=3)
    to_it = tuple(one for one in suspicious(probes, [places(4)]) if one[2] == 3)
    (end,) = slow_parts(again(probes, 0.95, to_it)).ends
    assert (end.host, end.end) == (host_of(3), "sender")


def test_between_two_nodes_both_directions_are_tried() -> None:
    assert set(suspicious(slowed(network(2), 0.1, source=1), [places(2)])) == {(0, 0, 1), (0, 1, 0)}


def test_what_came_to_nothing_is_tried_again_and_failing_again_takes_nothing_away() -> None:
    probes = tuple(
        replace(probe, value=None, outcome="stalled") if number == 1 else probe
        for number, probe in enumerate(network(4))
    )
    found = suspicious(probes, [places(4)])
    assert found == ((0, 1, 2),)
    failed = [replace(probe, value=None) for probe in network(4)]
    assert with_the_best(network(4), failed) == network(4)
    assert again(probes, 0.9, found)[1].value == 0.9


@pytest.mark.parametrize("nodes", [2, 3, 4])
def test_a_network_slower_than_another_is_tried_once_at_every_node(nodes: int) -> None:
    own, other = timed_probes(nodes, gbit_s=1.0), timed_probes(nodes, "eth1", "10.1.0", 10.0)
    networks = [places(nodes), places(nodes, "eth1", "10.1.0")]
    found = suspicious((*own, *other), networks)
    assert set(found) == {(0, one, (one + 1) % nodes) for one in range(nodes)}
    assert suspicious((*again(own, 1.0, found), *other), networks) == ()
    assert suspicious((*own, *other), networks[::-1]) == ()


def test_transfers_of_other_networks_come_later_and_are_their_own() -> None:
    slow = slowed(tuple(timed_probes(4, "eth1", "10.1.0", 1.0)), 0.1, source=0, target=2)
    networks = [places(4), places(4, "eth1", "10.1.0")]
    assert suspicious((*slowed(network(4), 0.1, source=1, target=2), *slow), networks) == (
        (0, 1, 2),
        (1, 0, 2),
    )
    fast = [replace(probe, value=0.9) for probe in network(4)]
    assert with_the_best(slow, fast) == slow  # another address is another way


@given(transfers_of_some, st.integers(1, 40))
def test_no_node_is_in_two_transfers_of_a_round(found: list[Transfer], most: int) -> None:
    rounds = rounds_again(found, most)
    assert len(rounds) <= most
    for one in rounds:
        ends = [place for pair in one.pairs for place in pair]
        assert len(ends) == len(set(ends))
    ordered = [(one.network, *pair) for one in rounds for pair in one.pairs]
    assert len(ordered) == len(set(ordered))
    assert set(ordered) <= set(found)
    if len(rounds) < most:
        assert set(ordered) == set(found)


@pytest.mark.parametrize("nodes", [3, 4, 8, 64])
def test_a_slow_node_of_any_cluster_takes_half_of_the_rounds(nodes: int) -> None:
    probes = slowed(slowed(network(nodes), 0.1, source=2), 0.1, target=2)
    assert len(rounds_again(suspicious(probes, [places(nodes)]), MOST_ROUNDS)) <= MOST_ROUNDS / 2


def trips(late_us: float) -> tuple[Probe, ...]:
    """The round trips of four nodes, of which one is that late, the quickest of it too."""
    found = []
    for number, timed_probe in enumerate(probe for probe in timed_probes(4) if probe.kind == "latency"):
        value = late_us if number == 2 else 25.0
        assert timed_probe.measured is not None
        found.append(replace(timed_probe, value=value, measured=replace(timed_probe.measured, least=value)))
    return tuple(found)


def test_a_late_round_trip_is_measured_again_and_the_quickest_counts() -> None:
    assert late_again(trips(30.0), [places(4)]) == ()
    probes = trips(9000.0)
    found = late_again(probes, [places(4)])
    assert found == ((0, 2, 3),)
    assert late_again(again(probes, 30.0, found), [places(4)]) == ()
    twice = again(probes, 9500.0, found)
    assert twice[2].value == 9000.0
    assert late_again(twice, [places(4)]) == found
    assert late_again(again(twice, 9500.0, found), [places(4)]) == ()
