"""The report as metrics, for the textfile collector of Prometheus' node_exporter.

The text is valid both in Prometheus' own format and as OpenMetrics 1.0: gauges only, without time stamps, ended by
`# EOF`. Labels are bounded: checks and outcomes are ours, hosts are cut at `MOST_FINDINGS` series.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, get_args

from ncclcheck.model.report import Report, Status
from ncclcheck.report.text.plain import plain

if TYPE_CHECKING:
    from prometheus_client.core import GaugeMetricFamily

MOST_FINDINGS = 1000
MOST_NODES = 500
_LONGEST_LABEL = 200


def to_metrics(report: Report) -> str:
    """Return the metrics of the report as text."""
    # prometheus_client takes a tenth of a second to import, and reads this process while it does.
    from prometheus_client import CollectorRegistry
    from prometheus_client.openmetrics.exposition import generate_latest

    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Families(report))
    text: bytes = generate_latest(registry)
    return text.decode()


class _Families:
    """What prometheus_client asks for the metrics. State: the report."""

    def __init__(self, report: Report) -> None:
        self._report = report

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield every metric with its samples."""
        report = self._report
        yield from _run_metrics(report)
        yield from _check_metrics(report)
        yield from _finding_metrics(report)
        yield from _bench_metrics(report)
        yield from _isolation_metrics(report)


def _gauge(name: str, words: str, *labels: str) -> GaugeMetricFamily:
    from prometheus_client.core import GaugeMetricFamily

    return GaugeMetricFamily(f"ncclcheck_{name}", words, labels=labels)


def _label(text: str) -> str:
    return plain(text)[:_LONGEST_LABEL]


def _run_metrics(report: Report) -> Iterator[GaugeMetricFamily]:
    tool = _gauge("info", "Which ncclcheck wrote this, and by which command.", "version", "command")
    tool.add_metric([_label(report.tool.version), _label(report.command)], 1)
    yield tool
    verdict = _gauge("verdict", "1 for the status of the last run, 0 for the others.", "status")
    for status in get_args(Status):
        verdict.add_metric([status], report.verdict.status == status)
    yield verdict
    code = _gauge("exit_code", "Exit code of the last run.")
    code.add_metric([], report.verdict.exit_code)
    yield code
    duration = _gauge("run_duration_seconds", "How long the last run took.")
    duration.add_metric([], report.elapsed_s)
    yield duration
    began = _timestamp(report.created)
    if began is not None:
        when = _gauge("last_run_timestamp_seconds", "When the last run began, in seconds since 1970.")
        when.add_metric([], began)
        yield when
    nodes = _gauge("nodes", "Nodes of the last run by whether they reported.", "status")
    counts = Counter(node.status for node in report.nodes)
    for node_status in ("reported", "silent"):
        nodes.add_metric([node_status], counts[node_status])
    yield nodes


def _timestamp(created: str) -> float | None:
    """Return the seconds since 1970; None where the report does not say when the run was."""
    try:
        moment = datetime.fromisoformat(created)
    except ValueError:
        return None
    return moment.timestamp() if moment.tzinfo is not None else None


def _check_metrics(report: Report) -> Iterator[GaugeMetricFamily]:
    outcomes = _gauge("check_outcome", "1 for the outcome of each check.", "check", "outcome")
    for slug, outcome in sorted({(entry.slug, entry.outcome) for entry in report.checks}):
        outcomes.add_metric([_label(slug), outcome], 1)
    yield outcomes


def _finding_metrics(report: Report) -> Iterator[GaugeMetricFamily]:
    counts = Counter(
        (_label(host), _label(finding.slug), finding.severity)
        for finding in report.findings
        for host in finding.hosts or ("",)
    )
    findings = _gauge("findings", "Findings by host, check and severity.", "host", "check", "severity")
    shown = sorted(counts)[:MOST_FINDINGS]
    for labels in shown:
        findings.add_metric(list(labels), counts[labels])
    yield findings
    total = _gauge("findings_by_severity", "Findings by severity, all of them.", "severity")
    by_severity = Counter(finding.severity for finding in report.findings)
    for severity in ("error", "warning", "info"):
        total.add_metric([severity], by_severity[severity])
    yield total
    left_out = _gauge("series_left_out", "Series of ncclcheck_findings that did not fit into this file.")
    left_out.add_metric([], len(counts) - len(shown))
    yield left_out


def _bench_metrics(report: Report) -> Iterator[GaugeMetricFamily]:
    if report.bench is None or not report.bench.points:
        return
    words = "Bus bandwidth as nccl-tests define it, by collective and size."
    busbw = _gauge("busbw_bytes_per_second", words, "op", "size_bytes")
    found = {(point.op, point.size_bytes): point.busbw_gb_s for point in report.bench.points}
    for (op, size), gb_s in found.items():
        busbw.add_metric([op, str(size)], gb_s * 1e9)
    yield busbw


def _isolation_metrics(report: Report) -> Iterator[GaugeMetricFamily]:
    isolation = report.isolation
    if isolation is None:
        return
    if isolation.reference_gbit_s is not None:
        words = "What a good pair of nodes reaches in one direction."
        reference = _gauge("pair_reference_bytes_per_second", words)
        reference.add_metric([], isolation.reference_gbit_s * 1e9 / 8)
        yield reference
    words = "Rate of a node that isolate names, as a share of a good node's."
    ratio = _gauge("node_rate_ratio", words, "host", "direction")
    named = _gauge("node_named", "1 for each node that isolate names, by its verdict.", "host", "verdict")
    for host, node in {_label(node.host): node for node in isolation.nodes[:MOST_NODES]}.items():
        named.add_metric([host, node.verdict], 1)
        for direction, part in (("send", node.sends), ("receive", node.receives)):
            if part is not None:
                ratio.add_metric([host, direction], part)
    yield named
    yield ratio
