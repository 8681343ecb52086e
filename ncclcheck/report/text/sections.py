"""What a report holds beside checks and findings, as plain text: for formats that know test cases or messages only."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.model.fact import Missing
from ncclcheck.model.report import Report
from ncclcheck.report.matrix.matrix_text import matrix_lines
from ncclcheck.report.soak.soak_text import soak_lines
from ncclcheck.report.text.bench_text import bench_lines
from ncclcheck.report.text.comparison_text import comparison_lines
from ncclcheck.report.text.explain_text import harmless_lines, used_lines
from ncclcheck.report.text.groups_text import group_lines
from ncclcheck.report.text.isolation_text import isolation_lines
from ncclcheck.report.text.measured_text import measured_lines
from ncclcheck.report.text.mesh_text import mesh_lines
from ncclcheck.report.text.nccl_text import nccl_lines
from ncclcheck.report.text.page import Line, draw_plain, line
from ncclcheck.report.text.plain import plain
from ncclcheck.report.text.settings_text import settings_lines
from ncclcheck.report.trials.trials_text import trial_lines


def sections(report: Report, verbose: int) -> Iterator[tuple[str, str]]:
    """Title and text of each that is not empty, in the order of the page. The text ends with a new line."""
    log = report.log
    for title, lines in (
        ("what NCCL chooses", nccl_lines(report, verbose) if report.nccl else ()),
        ("reach", reach_lines(report)),
        ("measured between the nodes", measured_lines(report)),
        ("as-is and advised", comparison_lines(report)),
        ("benchmark", bench_lines(report, verbose)),
        ("measured in the parallel groups", group_lines(report)),
        ("settings that were tried", trial_lines(report)),
        ("pairs of nodes", isolation_lines(report)),
        ("matrix of the nodes", matrix_lines(report)),
        ("soak", soak_lines(report)),
        ("parallel groups", mesh_lines(report)),
        ("logs that were read", (line(", ".join(file.name for file in log.files)),) if log else ()),
        ("really used", used_lines(log, verbose) if log else ()),
        ("harmless, although it looks like trouble", harmless_lines(log, verbose) if log else ()),
        ("settings to use", settings_lines(report)),
    ):
        text = draw_plain(lines)
        if text:
            yield title, text


def authentication_words(report: Report) -> str:
    """Return whether the messages between the nodes were authenticated, and how."""
    by = report.authentication.by
    return f"authenticated by {plain(by)}" if by else "not authenticated: the run had no key"


def reach_lines(report: Report) -> Iterator[Line]:
    """How many pairs of nodes were tried, and how many attempts failed how; the checks name them."""
    if not isinstance(report.coverage, Missing):
        coverage = report.coverage
        yield line(
            f"{coverage.pairs_planned} of {coverage.pairs_possible} directed pairs of nodes were tried "
            f"({coverage.scheme})"
        )
    if len(report.nodes) > 1:
        yield line(authentication_words(report))
    failed: dict[str, int] = {}
    for probe in report.probes:
        if probe.outcome not in ("ok", "self"):
            key = f"{probe.kind} {probe.outcome}"
            failed[key] = failed.get(key, 0) + 1
    if failed:
        counts = ", ".join(f"{count} x {key}" for key, count in sorted(failed.items()))
        yield line(f"attempts that failed: {counts}")
