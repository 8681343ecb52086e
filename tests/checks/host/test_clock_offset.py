"""NC712 clock-offset."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.model.snapshot import Snapshot
from tests.builders import cluster
from tests.checks.running import finding, is_silent, run
from tests.fact_builders import some
from tests.probe_builders import clock_probes


def clocks(nodes: int, **ahead_us: float) -> Snapshot:
    snapshot = cluster(nodes)
    others = tuple(probe for probe in some(snapshot.probes) if probe.kind != "clock")
    return replace(snapshot, probes=others + clock_probes(nodes, **ahead_us))


def test_the_node_that_is_off_is_named_with_the_bound() -> None:
    found = finding("clock-offset", clocks(4, node03=-5e6))
    assert (found.severity, found.hosts) == ("warning", ("node03",))
    assert "the clock of node03 is 5 s behind that of node01, node02 and node04" in found.summary
    assert "within 5" in found.evidence[0].observed


def test_of_two_nodes_nobody_is_called_right() -> None:
    found = finding("clock-offset", clocks(2, node02=4e9))
    assert found.hosts == ("node01", "node02")
    assert "1.11 h apart (which of the two is right is not known)" in found.summary


def test_some_tenths_of_a_second_are_information_and_less_is_nothing() -> None:
    assert finding("clock-offset", clocks(3, node02=2e5)).severity == "info"
    assert is_silent("clock-offset", clocks(3, node02=3e4))


def test_only_what_lies_beyond_the_bound_counts() -> None:
    snapshot = clocks(2, node02=1.5e6)
    slow = tuple(
        replace(probe, measured=replace(probe.measured, least=2e6))
        if probe.kind == "clock" and probe.measured
        else probe
        for probe in some(snapshot.probes)
    )
    assert run("clock-offset", replace(snapshot, probes=slow)).findings[0].severity == "info"
    slower = tuple(
        replace(probe, measured=replace(probe.measured, least=4e6))
        if probe.kind == "clock" and probe.measured
        else probe
        for probe in some(snapshot.probes)
    )
    result = run("clock-offset", replace(snapshot, probes=slower))
    assert (result.outcome, "too slow" in result.reason) == ("unknown", True)


def test_what_was_not_measured_is_not_passed() -> None:
    snapshot = cluster(3)
    kept = tuple(
        replace(probe, outcome="stalled", value=None)
        if probe.kind == "clock" and "node03" in (probe.from_host, probe.to_host)
        else probe
        for probe in some(snapshot.probes)
    )
    result = run("clock-offset", replace(snapshot, probes=kept))
    assert (result.outcome, result.reason) == (
        "unknown",
        "node03: the clock was not compared with the others",
    )


def test_large_figures_are_written_without_an_exponent() -> None:
    assert "499,000 h apart" in finding("clock-offset", clocks(2, node02=499_000 * 3.6e9)).summary
    assert "3,599 s ahead of" in finding("clock-offset", clocks(3, node02=3599e6)).summary
