"""NC217 latency-outlier."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ncclcheck.model.snapshot import Probe, Snapshot
from tests.builders import cluster
from tests.checks.running import finding, is_silent, run
from tests.fact_builders import some


def later(snapshot: Snapshot, more_us: float, *hosts: str, quickest: float | None = None) -> Snapshot:
    """The snapshot in which the round trips between these hosts, or to and from the only one, take longer."""

    def change(probe: Probe) -> Probe:
        ends = {probe.from_host, probe.to_host}
        if (
            probe.kind != "latency"
            or probe.value is None
            or probe.measured is None
            or not ends.issuperset(hosts)
        ):
            return probe
        least = probe.value + more_us if quickest is None else quickest
        return replace(probe, value=probe.value + more_us, measured=replace(probe.measured, least=least))

    return replace(snapshot, probes=tuple(change(one) for one in some(snapshot.probes)))


@pytest.mark.parametrize("nodes", [3, 4, 9])
def test_a_late_node_is_named_and_not_its_partners(nodes: int) -> None:
    found = finding("latency-outlier", later(cluster(nodes), 500.0, "node02"))
    assert (found.severity, found.hosts) == ("warning", ("node02",))
    assert found.summary.startswith("node02 has a high latency on eth0: a round trip takes 52")
    assert "while 25 us is usual" in found.summary
    assert all("node02" in evidence.hosts for evidence in found.evidence)


def test_a_late_way_between_two_nodes_names_both() -> None:
    found = finding("latency-outlier", later(cluster(4), 500.0, "node02", "node03"))
    assert set(found.hosts) == {"node02", "node03"}


def test_a_little_later_is_silent() -> None:
    assert is_silent("latency-outlier", later(cluster(4), 90.0, "node02"))


def test_a_busy_cpu_is_not_the_network() -> None:
    assert is_silent("latency-outlier", later(cluster(4), 500.0, "node02", quickest=30.0))


def test_a_node_whose_processes_are_late_and_whose_kernel_is_not_is_busy() -> None:
    late = later(cluster(4), 500.0, "node02")
    probes = tuple(
        replace(probe, measured=replace(probe.measured, kernel_us=20.0)) if probe.measured else probe
        for probe in some(late.probes)
    )
    found = finding("latency-outlier", replace(late, probes=probes))
    assert (found.severity, found.hosts) == ("info", ("node02",))
    assert "its network 20 us: the cores are busy" in found.summary


def test_a_late_network_is_late_for_the_kernel_as_well() -> None:
    late = later(cluster(4), 500.0, "node02")
    probes = tuple(
        replace(probe, measured=replace(probe.measured, kernel_us=probe.value - 10))
        if probe.measured and probe.value
        else probe
        for probe in some(late.probes)
    )
    found = finding("latency-outlier", replace(late, probes=probes))
    assert (found.severity, found.hosts) == ("warning", ("node02",))


def test_two_nodes_have_nothing_to_compare_with() -> None:
    assert run("latency-outlier", cluster(2)).outcome == "not_applicable"


def test_what_was_not_measured_is_not_passed() -> None:
    kept = tuple(
        probe for probe in some(cluster(4).probes) if probe.kind != "latency" or "node03" not in probe.to_host
    )
    result = run("latency-outlier", replace(cluster(4), probes=kept))
    assert result.outcome == "passed"  # node03 was measured as the caller
    none = tuple(probe for probe in kept if probe.kind != "latency" or probe.from_host != "node03")
    result = run("latency-outlier", replace(cluster(4), probes=none))
    assert result.outcome == "unknown"
    assert "node03: the latency of NCCL's network was not measured" in result.reason


def test_a_round_trip_that_came_to_nothing_is_not_passed() -> None:
    probes = tuple(
        replace(probe, outcome="stalled", value=None)
        if probe.kind == "latency" and (probe.from_host, probe.to_host) == ("node01", "node02")
        else probe
        for probe in some(cluster(4).probes)
    )
    result = run("latency-outlier", replace(cluster(4), probes=probes))
    assert (result.outcome, result.reason) == ("unknown", "node01: the round trip to node02 ended as stalled")
