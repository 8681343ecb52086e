"""What is known of a network from the transfers to its addresses."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ncclcheck.measure.links.network_rates import (
    Throughput,
    is_cpu_limited,
    measured_gbit_s,
    measured_gbit_s_to,
    measured_networks,
    measured_round_trip,
)
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.snapshot import Probe
from tests.fact_builders import host_of, some
from tests.probe_builders import timed_probe, timed_probes


def places(count: int, name: str = "eth0", network: str = "10.0.0") -> dict[str, tuple[str, str]]:
    return {host_of(number): (name, f"{network}.{number + 1}") for number in range(count)}


TWO = (*timed_probes(4), *timed_probes(4, "eth1", "10.1.0", 10.0))


def test_only_the_transfers_to_these_places_count() -> None:
    slow, fast = (
        some(measured_gbit_s(TWO, places(4, "eth1", "10.1.0"))),
        some(measured_gbit_s(TWO, places(4))),
    )
    assert (slow.transfers, fast.transfers) == (12, 12)
    assert slow.median == pytest.approx(9.85)
    assert slow.low == pytest.approx(9.7)
    assert slow.high == pytest.approx(10.0)
    assert fast.median > 90
    assert slow.is_slower_than(fast)
    assert not fast.is_slower_than(slow)


def test_mixed_places_are_put_together_from_what_was_measured_to_each() -> None:
    mixed = {**places(4), host_of(2): ("eth1", "10.1.0.3")}
    found = some(measured_gbit_s(TWO, mixed))
    assert found.transfers == 12
    assert found.low < 11
    assert found.high > 90


def test_each_place_has_its_own_figure_where_the_whole_has_one() -> None:
    mixed = {**places(4), host_of(2): ("eth1", "10.1.0.3")}
    found = measured_gbit_s_to(TWO, mixed)
    assert {host: one.transfers for host, one in found.items()} == dict.fromkeys(mixed, 3)
    assert found[host_of(2)].high < 11
    assert min(found[host_of(number)].low for number in (0, 1, 3)) > 90
    assert measured_gbit_s_to((), mixed) == {}


def test_round_trips_have_their_median_and_extremes() -> None:
    trips = some(measured_round_trip(TWO, places(4)))
    assert (trips.median_us, trips.least_us, trips.most_us, trips.pairs) == (26.0, 25.0, 27.0, 12)


@pytest.mark.parametrize(
    "probes",
    [
        (),
        timed_probes(4, "eth1", "10.1.0"),
        tuple(probe for probe in timed_probes(4) if probe.to_host != "node03"),
        tuple(probe for probe in timed_probes(4) if probe.from_host != "node03"),
        tuple(replace(probe, outcome="stalled", value=None) for probe in timed_probes(4)),
        Missing("absent", "no probes"),
    ],
)
def test_rates_are_missing_unless_every_node_is_covered(probes: Fact[tuple[Probe, ...]]) -> None:
    assert isinstance(measured_gbit_s(probes, places(4)), Missing)
    assert isinstance(measured_round_trip(probes, places(4)), Missing)


def throughput(median: float, low: float, high: float, *, cpu_limited: bool = False) -> Throughput:
    return Throughput(median, low, high, 12, cpu_limited)


@pytest.mark.parametrize(
    ("slow", "expected"),
    [
        (throughput(5.0, 4.0, 6.0), True),
        (throughput(5.0, 4.0, 9.5), False),  # they overlap
        (throughput(8.0, 7.5, 8.5), False),  # less than 1.3 times
        (throughput(5.0, 4.0, 6.0, cpu_limited=True), False),  # it may be as fast
    ],
)
def test_slower_is_what_is_clearly_so(slow: Throughput, expected: bool) -> None:
    assert slow.is_slower_than(throughput(10.0, 9.0, 11.0, cpu_limited=True)) is expected


def test_the_cpu_was_the_limit_where_it_was_busy_all_the_time() -> None:
    assert is_cpu_limited(timed_probe("bandwidth", 0, 1, 50.0, cpu_share=0.9))
    assert not is_cpu_limited(timed_probe("bandwidth", 0, 1, 50.0, cpu_share=0.8))
    assert not is_cpu_limited(timed_probe("bandwidth", 0, 1, 50.0, cpu_share=Missing("absent", "not told")))
    busy = tuple(
        replace(probe, measured=replace(probe.measured, cpu_share=1.0))
        if probe.measured and number % 2
        else probe
        for number, probe in enumerate(timed_probes(4))
    )
    assert some(measured_gbit_s(busy, places(4))).cpu_limited


def test_the_measured_networks_are_found_again_in_their_order() -> None:
    hosts = [host_of(number) for number in range(4)]
    assert measured_networks(TWO, hosts) == (places(4), places(4, "eth1", "10.1.0"))
    assert measured_networks((), hosts) == ()
    assert measured_networks(Missing("absent", "none"), hosts) == ()


def test_networks_with_names_that_differ_are_found_again() -> None:
    renamed = tuple(
        replace(probe, interface="ens3") if probe.to_host == "node02" and probe.interface == "eth1" else probe
        for probe in TWO
    )
    hosts = [host_of(number) for number in range(4)]
    expected = {**places(4, "eth1", "10.1.0"), "node02": ("ens3", "10.1.0.2")}
    assert measured_networks(renamed, hosts) == (places(4), expected)


def test_networks_that_share_an_interface_are_told_apart_by_name() -> None:
    shared = tuple(probe for probe in TWO if not (probe.to_host == "node02" and probe.interface == "eth1"))
    hosts = [host_of(number) for number in range(4)]
    assert measured_networks(shared, hosts) == (places(4),)
