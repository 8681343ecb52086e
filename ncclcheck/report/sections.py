"""The sections of a report in their order, each with its rendering in every format: a new one is added here alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from msgspec import Struct

from ncclcheck.model.report import Report
from ncclcheck.report.markdown.markdown_sections import (
    as_block,
    bench_markdown,
    checks_markdown,
    findings_markdown,
    fleet_markdown,
    log_markdown,
    nccl_markdown,
    settings_markdown,
    unknown_markdown,
)
from ncclcheck.report.matrix.matrix_text import matrix_lines
from ncclcheck.report.soak.soak_text import soak_lines
from ncclcheck.report.text.bench_text import bench_lines
from ncclcheck.report.text.checks_text import quiet_check_lines, unknown_checks, unknown_lines
from ncclcheck.report.text.comparison_text import comparison_lines
from ncclcheck.report.text.explain_text import log_aside, log_lines
from ncclcheck.report.text.findings_text import finding_lines, merged_findings
from ncclcheck.report.text.fleet_text import fleet_lines
from ncclcheck.report.text.groups_text import group_lines
from ncclcheck.report.text.isolation_text import isolation_lines
from ncclcheck.report.text.measured_text import measured_lines
from ncclcheck.report.text.mesh_text import mesh_lines
from ncclcheck.report.text.nccl_text import nccl_lines
from ncclcheck.report.text.page import Line, draw_plain
from ncclcheck.report.text.reach_text import reach_lines
from ncclcheck.report.text.settings_text import settings_lines
from ncclcheck.report.trials.trials_text import trial_lines

Lines: TypeAlias = Callable[[Report, int], Iterable[Line]]


class ReportSection(Struct, frozen=True):
    """A section: what it is called, and how each format renders it; where the report lacks it, a rendering is empty.

    `name` is its anchor in the HTML page, `html` its template in html/web/sections. `text` gets how verbose to be.
    `markdown` yields what stands below the heading. `aside` is what formats of test cases or messages (JUnit, the
    annotations of GitHub) print of it; None: its entries are test cases or messages themselves.
    """

    name: str
    title: str
    text: Lines
    markdown: Callable[[Report], Iterable[str]]
    html: str
    aside: Lines | None
    count: Callable[[Report], int] | None = None  # of the things in the plural that are its title
    ends_terminal: bool = False  # where the last lines are those that are read first


def heading(section: ReportSection, report: Report) -> str:
    """Return the title as a heading: `Soak`, or how many there are: `3 findings`."""
    if section.count is None:
        return section.title[:1].upper() + section.title[1:]
    number = section.count(report)
    return f"{number:,} {section.title if number != 1 else section.title.removesuffix('s')}"


def asides(report: Report, verbose: int) -> Iterator[tuple[str, str]]:
    """Yield title and text of what is no test case and no message of its own, where the report has it."""
    for section in IN_TERMINAL:
        text = draw_plain(section.aside(report, verbose)) if section.aside is not None else ""
        if text:
            yield section.title, text


def _always(lines: Callable[[Report], Iterable[Line]]) -> Lines:
    """Return the lines, however verbose the page is."""
    return lambda report, _: lines(report)


def _same_lines(
    name: str, title: str, lines: Callable[[Report], Iterable[Line]], html: str = "lines"
) -> ReportSection:
    """Return a section whose lines in the terminal are also those of the other formats."""
    return ReportSection(
        name, title, text=_always(lines), markdown=as_block(lines), html=html, aside=_always(lines)
    )


def _in_header(*_: object) -> tuple[()]:
    """Return nothing: the header says how many nodes there are, or which, and who is silent."""
    return ()


def _network_lines(report: Report) -> Iterator[Line]:
    yield from reach_lines(report)
    yield from measured_lines(report)


def _nccl_aside(report: Report, verbose: int) -> Iterable[Line]:
    return nccl_lines(report, verbose) if report.nccl else ()


SECTIONS: tuple[ReportSection, ...] = (
    ReportSection(
        "findings",
        "findings",
        text=finding_lines,
        markdown=findings_markdown,
        html="findings",
        aside=None,
        count=lambda report: len(merged_findings(report.findings)),
    ),
    ReportSection(
        "fleet",
        "fleet",
        text=_always(fleet_lines),
        markdown=fleet_markdown,
        html="fleet",
        aside=_always(fleet_lines),
    ),
    ReportSection(
        "not-known",
        "unknown checks",
        text=unknown_lines,
        markdown=unknown_markdown,
        html="not_known",
        aside=None,
        count=lambda report: len(unknown_checks(report)),
    ),
    ReportSection(
        "settings",
        "settings to use",
        text=_always(settings_lines),
        markdown=settings_markdown,
        html="settings",
        aside=_always(settings_lines),
        ends_terminal=True,
    ),
    ReportSection(
        "nodes",
        "nodes",
        text=_in_header,
        markdown=_in_header,
        html="nodes",
        aside=None,
        count=lambda report: len(report.nodes),
    ),
    ReportSection(
        "nccl", "what NCCL chooses", text=nccl_lines, markdown=nccl_markdown, html="nccl", aside=_nccl_aside
    ),
    ReportSection(
        "reach",
        "between the nodes",
        text=_always(measured_lines),  # the rest is in the summary
        markdown=as_block(_network_lines),
        html="reach",
        aside=_always(_network_lines),
    ),
    _same_lines("comparison", "as-is and advised", comparison_lines, "comparison"),
    ReportSection(
        "bench", "benchmark", text=bench_lines, markdown=bench_markdown, html="bench", aside=bench_lines
    ),
    _same_lines("groups", "measured in the parallel groups", group_lines),
    _same_lines("trials", "settings that were tried", trial_lines),
    _same_lines("pairs", "pairs of nodes", isolation_lines, "pairs"),
    _same_lines("matrix", "matrix of the nodes", matrix_lines, "matrix"),
    _same_lines("soak", "soak", soak_lines, "soak"),
    _same_lines("mesh", "placement of the parallel groups", mesh_lines),
    ReportSection("log", "logs", text=log_lines, markdown=log_markdown, html="log", aside=log_aside),
    ReportSection(
        "checks",
        "checks",
        text=quiet_check_lines,
        markdown=checks_markdown,
        html="checks",
        aside=None,
        count=lambda report: len(report.checks),
        ends_terminal=True,
    ),
)
IN_TERMINAL: tuple[ReportSection, ...] = tuple(sorted(SECTIONS, key=lambda section: section.ends_terminal))
