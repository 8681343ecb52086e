"""The time axis of a soak."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.model.benchmarks.soak import NodeCounts
from ncclcheck.report.html.html import to_html
from ncclcheck.report.html.html_soak import LEFT, WIDTH, time_axis
from tests.soak_builders import dropped_lines, healthy_lines, soak_block, soak_report, soaked


def test_series_events_and_counters_lie_on_one_axis() -> None:
    lines = dropped_lines()
    lines[31] = soak_block(30, nodes=(NodeCounts("node01", {"eth0 rx_errors": 5}),))
    axis = time_axis(soaked(lines))
    assert axis is not None
    assert len(axis.lines[0].split()) == 58
    drop, counter = axis.bars
    assert drop.title.startswith("drop from 0:03:20")
    assert counter.x == LEFT + WIDTH / 2
    assert drop.x < counter.x <= drop.x + drop.width + 1
    page = to_html(soak_report(lines))
    assert "<polyline" in page
    assert "node01 eth0 rx_errors +5" in page


def test_without_a_series_there_is_no_axis() -> None:
    assert time_axis(None) is None
    assert time_axis(replace(soaked(healthy_lines()), series=())) is None


def test_hostile_names_stay_text() -> None:
    lines = healthy_lines()
    lines[3] = soak_block(2, nodes=(NodeCounts("<script>", {"<b> rx_errors": 5}),))
    page = to_html(soak_report(lines))
    assert "<script> <b>" not in page
