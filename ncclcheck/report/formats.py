"""The formats of a report by name: one Report in, one text out, the same verdict and findings in each."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from ncclcheck.model.formats.choices import (
    HOST_ORDERS,
    NODE_LISTS,
    PROTOCOLS,
    FileFormat,
    HostOrder,
    NodeList,
    Protocol,
    ReportFormat,
)
from ncclcheck.model.report import Report
from ncclcheck.report.document import json_parts, to_json
from ncclcheck.report.fleet.status_line import status_line
from ncclcheck.report.matrix.host_orders import host_order
from ncclcheck.report.node_lists import node_list
from ncclcheck.report.text.terminal import render

Format: TypeAlias = ReportFormat | FileFormat
ScreenFormat: TypeAlias = Format | NodeList | HostOrder | Protocol
SUFFIXES: dict[str, Format] = {
    ".json": "json",
    ".xml": "junit",
    ".md": "md",
    ".html": "html",
    ".prom": "prom",
    ".txt": "text",
}
WITH_TABLES: dict[str, Format] = {
    **SUFFIXES,
    ".csv": "csv",
}  # of `matrix`: its pairs; of `bench --try`: rows for a tuner


def lacks(report: Report, format_: ScreenFormat) -> str:
    """Return why the report has nothing to print in that format, and which command makes what it prints; "" if it has.

    A list of nodes without one would be taken for a list of tested nodes.
    """
    if format_ not in NODE_LISTS or report.isolation is not None:
        return ""
    if format_ in HOST_ORDERS:
        makers = "'ncclcheck isolate', 'ncclcheck bench --isolate' and 'ncclcheck matrix' make one"
        missing = "this report has no section 'isolation' or 'matrix', one of which hostfile lists"
        return "" if report.matrix is not None else f"{missing}: {makers}"
    makers = "'ncclcheck isolate' and 'ncclcheck bench --isolate' make one"
    return f"this report has no section 'isolation', which {format_} lists: {makers}"


def rendered(report: Report, format_: ScreenFormat, verbose: int = 0) -> str:
    """Render the report in that format; `verbose` matters to text only, since the rest hold everything."""
    if format_ == "text":
        return render(report, verbose=verbose)
    if format_ in HOST_ORDERS and (report.matrix is not None or format_ not in NODE_LISTS):
        return host_order(report, format_)
    if format_ in NODE_LISTS:
        return node_list(report, format_)
    if format_ in PROTOCOLS:
        return status_line(report, format_)
    return _renderer(format_)(report)


def rendered_parts(report: Report, format_: ScreenFormat, verbose: int = 0) -> Iterable[str]:
    """Return what `rendered` returns, in parts; JSON, which may be very large, is only made while they are taken."""
    return json_parts(report) if format_ == "json" else (rendered(report, format_, verbose),)


def _renderer(format_: ScreenFormat) -> Callable[[Report], str]:
    # Imported where they are needed: a preflight that prints text has no use for templates and charts.
    if format_ == "junit":
        from ncclcheck.report.junit import to_junit

        return to_junit
    if format_ == "md":
        from ncclcheck.report.markdown.markdown import to_markdown

        return to_markdown
    if format_ == "github":
        from ncclcheck.report.github import to_github

        return to_github
    if format_ == "csv":
        from ncclcheck.report.matrix.matrix_csv import to_csv
        from ncclcheck.report.trials.tuner_csv import to_tuner_csv

        return lambda report: to_csv(report) if report.matrix is not None else to_tuner_csv(report)
    if format_ == "html":
        from ncclcheck.report.html.html import to_html

        return to_html
    if format_ == "prom":
        from ncclcheck.report.fleet.metrics import to_metrics

        return to_metrics
    return to_json
