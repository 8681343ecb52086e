"""Metrics: what they say, that every reader of the format takes them, and that their number is bounded."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from msgspec.structs import replace

from ncclcheck.model.report import Report
from ncclcheck.report.fleet.metrics import MOST_FINDINGS, to_metrics
from tests.isolation_builders import SLOW, isolate_report
from tests.report.fleet.prometheus import (
    PROMTOOL_MISSING,
    complaints_of_promtool,
    promtool,
    samples,
    value,
)
from tests.report.hostile import NASTY, reports
from tests.report.reports import check_run, finding, found, report
from tests.report.samples import bench


def full() -> Report:
    """With findings whose hosts have hostile names, a benchmark, and a result of isolate."""
    nasty = tuple(f"{text}-{number}" for number, text in enumerate(NASTY))
    made = report([found(finding("mtu-differs", *nasty)), check_run("node-silent", code="NC101")])
    return replace(made, bench=bench(2, 2), isolation=isolate_report(nodes=(SLOW,)).isolation)


def test_the_verdict_the_time_and_each_finding_are_there() -> None:
    text = to_metrics(report([found(finding("mtu-differs", "node02", "node03")), check_run("node-silent")]))
    assert value(text, "verdict", status="fail") == 1
    assert value(text, "verdict", status="pass") == 0
    assert value(text, "exit_code") == 1
    assert value(text, "run_duration_seconds") == pytest.approx(3.142)
    assert value(text, "last_run_timestamp_seconds") == 1795262400
    assert value(text, "findings", host="node03", check="mtu-differs", severity="error") == 1
    assert value(text, "check_outcome", check="mtu-differs", outcome="found") == 1
    assert value(text, "check_outcome", check="node-silent", outcome="passed") == 1
    assert value(text, "nodes", status="reported") == 4


def test_what_was_measured_is_in_bytes() -> None:
    text = to_metrics(full())
    point = bench(2, 2).points[0]
    busbw = value(text, "busbw_bytes_per_second", op=point.op, size_bytes=str(point.size_bytes))
    assert busbw == pytest.approx(point.busbw_gb_s * 1e9)
    assert value(text, "node_rate_ratio", host="node03", direction="send") == pytest.approx(0.8)
    assert value(text, "node_named", host="node03", verdict="slow") == 1
    assert value(text, "pair_reference_bytes_per_second") == pytest.approx(10e9 / 8)


def test_a_report_without_a_date_has_no_time_and_never_that_of_now() -> None:
    names = {name for name, _ in samples(to_metrics(report(created="unknown")))}
    assert "ncclcheck_exit_code" in names
    assert "ncclcheck_last_run_timestamp_seconds" not in names


def test_the_number_of_series_is_bounded_and_what_is_left_out_is_counted() -> None:
    hosts = tuple(f"node{number}" for number in range(3 * MOST_FINDINGS))
    text = to_metrics(report([found(finding("mtu-differs", *hosts))]))
    shown = [name for name, _ in samples(text) if name == "ncclcheck_findings"]
    assert len(shown) == MOST_FINDINGS
    assert value(text, "series_left_out") == 2 * MOST_FINDINGS
    assert value(text, "findings_by_severity", severity="error") == 1
    assert len(samples(text)) < 2000


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(reports())
def test_both_parsers_read_whatever_other_machines_call_themselves(made: Report) -> None:
    text = to_metrics(made)
    assert value(text, "exit_code") == made.verdict.exit_code
    assert text.endswith("# EOF\n")


@pytest.mark.skipif(promtool() is None, reason=PROMTOOL_MISSING)
@pytest.mark.parametrize("made", [report(), full(), isolate_report(), report(created="unknown")])
def test_promtool_accepts_the_metrics_and_finds_nothing_to_criticise(made: Report) -> None:
    assert complaints_of_promtool(to_metrics(made)) == ""


@pytest.mark.skipif(promtool() is None, reason=PROMTOOL_MISSING)
def test_promtool_would_say_what_is_wrong() -> None:
    assert complaints_of_promtool('ncclcheck_x{host="a\nb"} 1\n')
    assert complaints_of_promtool("ncclcheck_bytes_total_gigabytes 1\n")
