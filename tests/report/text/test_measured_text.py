"""The measured networks on the page."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.model.snapshot import Snapshot
from ncclcheck.report.text.measured_text import measured_lines
from ncclcheck.report.text.page import draw
from tests.builders import cluster
from tests.probe_builders import timed_probes
from tests.report.reports import report


def text_of(snapshot: Snapshot) -> str:
    return draw(measured_lines(report(snapshot=snapshot)), width=None, color=False)


def test_each_network_has_its_bandwidth_and_round_trip() -> None:
    healthy = cluster(4)
    assert isinstance(healthy.probes, tuple)
    two = replace(healthy, probes=healthy.probes + timed_probes(4, "eth1", "10.1.0", 10.0))
    first, *rows = text_of(two).splitlines()
    assert "Measured between the nodes" in first
    assert [row.split()[0] for row in rows] == ["eth0", "eth1"]
    assert "9.85 Gbit/s (9.7 to 10 in 12 transfers), round trip 26 us (25 to 27 over 12 pairs)" in rows[1]


def test_what_was_not_measured_is_not_mentioned() -> None:
    healthy = cluster(4)
    assert isinstance(healthy.probes, tuple)
    bare = replace(healthy, probes=tuple(probe for probe in healthy.probes if probe.kind in ("tcp", "mtu")))
    assert text_of(bare) == ""


def test_a_network_that_gave_no_figure_says_so() -> None:
    healthy = cluster(4)
    assert isinstance(healthy.probes, tuple)
    dead = tuple(
        replace(probe, value=None, outcome="stalled") if probe.kind == "bandwidth" else probe
        for probe in healthy.probes
    )
    assert "bandwidth not known" in text_of(replace(healthy, probes=dead))
