"""The series and its events, for people."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.model.benchmarks.soak import NodeCounts, SoakGap
from ncclcheck.report.soak.soak_text import clock, long_words, soak_lines, sparkline
from ncclcheck.report.text.page import draw_plain
from ncclcheck.report.text.terminal import render
from tests.soak_builders import dropped_lines, healthy_lines, soak_block, soak_report


def test_the_series_its_events_and_its_counters_are_shown() -> None:
    lines = dropped_lines()
    lines[41] = soak_block(40, nodes=(NodeCounts("node01", {"eth0 rx_errors": 5}),))
    text = render(soak_report(lines))
    assert "soak: 60 blocks in 10 min, in soak-folder" in text
    assert "all_reduce 64M: median 1" in text
    assert "drop from 0:03:20 to 0:05:00: all_reduce was 14.9% slower" in text
    assert "slowest stretches: 1 min at 0:0" in text
    assert "counter node01: eth0 rx_errors +5" in text
    assert "█" not in sparkline([1000.0] * 40)


def test_gaps_and_lines_that_cannot_be_read_are_told() -> None:
    report = soak_report([*healthy_lines(), None])
    assert report.soak is not None
    report = replace(report, soak=replace(report.soak, gaps=(SoakGap(60.0, 120.0),)))
    text = draw_plain(soak_lines(report))
    assert "nothing measured from 0:01:00 to 0:02:00" in text
    assert "1 line of the file could not be read" in text


def test_times_are_told_as_people_read_them() -> None:
    assert clock(7384) == "2:03:04"
    assert [long_words(seconds) for seconds in (42, 60, 300, 9000)] == ["42 s", "1 min", "5 min", "2.5 h"]


def test_other_commands_have_no_such_section() -> None:
    assert draw_plain(soak_lines(replace(soak_report(healthy_lines()), soak=None))) == ""
