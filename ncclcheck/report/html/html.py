"""The report as one HTML page that needs nothing else: styles, script, charts and data are inside, no network is used.

Everything of other machines goes through `plain` and Jinja's autoescaping; the page's content security policy allows
our scripts by their hashes and no connection at all, so even a mistake of ours could not run or load anything.
"""

from __future__ import annotations

import base64
import functools
import gzip
import hashlib
import json
import re
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.model.codec import encode
from ncclcheck.model.fact import Missing
from ncclcheck.model.formats.prose import plural
from ncclcheck.model.report import NodeEntry, Report
from ncclcheck.model.units import format_number, format_size
from ncclcheck.report.html.html_charts import MOST_PAIRS, chart_data, failed_pairs
from ncclcheck.report.html.html_isolation import rounds_chart
from ncclcheck.report.html.html_matrix import heat_map, point_map
from ncclcheck.report.html.html_nodes import NodeTable, nccl_groups, node_table
from ncclcheck.report.html.html_soak import time_axis
from ncclcheck.report.sections import SECTIONS, heading
from ncclcheck.report.shell import comment, export
from ncclcheck.report.text.bench_text import (
    bench_setting,
    failure_words,
    reference_words,
    repeat_words,
    wrong_words,
)
from ncclcheck.report.text.checks_text import unknown_checks
from ncclcheck.report.text.findings_text import merged_evidence, merged_findings
from ncclcheck.report.text.fleet_text import fleet_rows, fleet_words
from ncclcheck.report.text.fold import fold_hosts
from ncclcheck.report.text.page import draw_plain
from ncclcheck.report.text.plain import plain
from ncclcheck.report.text.reach_text import authentication_words

if TYPE_CHECKING:
    from jinja2 import Environment

_LARGEST_PLAIN = 256 * 1024  # a larger report is embedded compressed
MOST_DRAWN = 1023  # nodes whose reach is drawn
_LARGEST_WHOLE = (
    16 << 20
)  # and of a larger one, only what is not of a single node: facts of a thousand take 50 MB
MOST_CELLS = 1 << 14  # of a matrix that the page embeds: all pairs of 128 nodes
_START = "page.start();"
_SCRIPTS = ("page.js", "nodes.js", "reach.js", "charts.js")
_VERDICT_WORDS = {
    "pass": "Pass",
    "fail": "Fail",
    "unknown": "Could not tell",
    "error": "Error in ncclcheck",
}
_IN_SCRIPT = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


class PageSection(Struct, frozen=True):
    """A section that the page has: its anchor, its title in the navigation and as a heading, its count, its HTML."""

    name: str
    title: str
    heading: str
    count: int | None
    body: str


def to_html(report: Report) -> str:
    """Return the page. It holds every finding and check as text, readable and printable without its script."""
    environment = _environment()
    findings = merged_findings(report.findings)
    nodes = node_table(report, findings)
    is_whole = holds_all(report)
    # The library of charts is as large as all else that a page of thousands may be: there, pairs are listed, not drawn.
    # So it is where the paths of a matrix are a picture.
    points = point_map(report.matrix)
    is_drawn = len(report.nodes) <= MOST_DRAWN and points is None
    charts = chart_data(report if is_drawn else replace(report, probes=()))
    script = _script(environment)
    library = _plotly() if charts else ""
    context = {
        "report": report,
        "findings": findings,
        "nodes": nodes,
        "silent": [node.host for node in report.nodes if node.status == "silent"],
        "charts": charts,
        "point_map": points,
        **_of_sections(report),
    }
    return environment.get_template("report.html.jinja").render(
        **context,
        sections=_sections(report, environment, context),
        counts=_counts(report),
        verdict_word=_VERDICT_WORDS[report.verdict.status],
        authentication=authentication_words(report),
        style=_asset(environment, "report.css"),
        script=script,
        library=library,
        start=_START,
        policy=_policy([script, _START, library]),
        page_data=script_json({"nodes": _packed(nodes), "charts": charts}),
        document=_document(report if is_whole else _without_nodes(report)),
        holds_all=is_whole,
    )


def _of_sections(report: Report) -> dict[str, Any]:
    """Return what the templates of the sections need beside the report."""
    return {
        "fleet_words": fleet_words,
        "fleet_rows": fleet_rows(report.fleet) if report.fleet is not None else [],
        "not_known": unknown_checks(report),
        "nccl_groups": nccl_groups(report),
        "coverage": None if isinstance(report.coverage, Missing) else report.coverage,
        "has_ranks": report.bench is not None and any(point.ranks for point in report.bench.points),
        "failed_pairs": failed_pairs(report),
        "most_pairs": MOST_PAIRS,
        "rounds_chart": rounds_chart(report.isolation),
        "heat_map": heat_map(report.matrix),
        "time_axis": time_axis(report.soak),
        "bench_setting": bench_setting(report.bench) if report.bench else "",
        "settings_text": _settings(report),
    }


def _sections(report: Report, environment: Environment, context: dict[str, Any]) -> list[PageSection]:
    """Return the sections that the report has. `lines` gives a template the lines that the terminal has."""
    found = []
    for section in SECTIONS:
        title = heading(section, report)
        body = environment.get_template(f"sections/{section.html}.html.jinja").render(
            **context,
            title=title,
            lines=lambda section=section: draw_plain(section.text(report, 1)),
        )
        if body.strip():
            count = None if section.count is None else section.count(report)
            found.append(PageSection(section.name, section.title, title, count, body))
    return found


@functools.cache
def _environment() -> Environment:
    # Jinja takes 50 ms to import, which a preflight that prints text need not pay.
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("ncclcheck.report.html", "web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(
        plain=plain,
        fold=fold_hosts,
        size=lambda size_bytes: format_size(size_bytes) if size_bytes > 0 else str(size_bytes),
        number=format_number,
        evidence=merged_evidence,
        latest=lambda ranks: max(ranks, key=lambda rank: rank.late_us, default=None),
        words=lambda text: text.replace("_", " ").replace("-", " "),
    )
    environment.globals.update(plural=plural, export=export, comment=comment)
    environment.globals.update(
        failure=failure_words, reference=reference_words, repeat=repeat_words, wrong=wrong_words
    )
    return environment


def _asset(environment: Environment, name: str) -> str:
    """Return a file of the package, which is ours: it goes into the page as it is."""
    if environment.loader is None:  # it is set above
        return ""
    return environment.loader.get_source(environment, name)[0]


def _script(environment: Environment) -> str:
    """Return the page's own script, with line ends as the browser will hash them."""
    return "\n".join(_asset(environment, name) for name in _SCRIPTS)


def _plotly() -> str:
    from plotly.offline import get_plotlyjs

    # It is a script inside a page, so the one text that would end it must not occur, whichever version this is.
    return re.sub(r"(?i)</(script)", r"<\\/\1", str(get_plotlyjs()))


def _policy(scripts: list[str]) -> str:
    """Scripts run if they are these, and nothing is loaded from or sent to anywhere."""
    hashes = (
        base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts if script
    )
    allowed = " ".join(f"'sha256-{digest}'" for digest in hashes)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def script_json(value: Any) -> str:
    """JSON that can stand inside a script element: nothing in it ends the element or starts a comment."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return _harmless(text)


def _harmless(text: str) -> str:
    return (
        "".join(_IN_SCRIPT.get(letter, letter) for letter in text)
        if any(c in text for c in _IN_SCRIPT)
        else text
    )


def holds_all(report: Report) -> bool:
    """Return whether the page embeds the whole report; of thousands of nodes it would be too large for a browser."""
    size = 0
    for node in report.nodes:
        size += len(encode(node))
        if size > _LARGEST_WHOLE:
            return False
    cells = len(report.matrix.cells) if report.matrix is not None else 0
    return cells <= MOST_CELLS and len(encode(report.probes)) + len(encode(report.nccl)) <= _LARGEST_WHOLE


def _without_nodes(report: Report) -> Report:
    """Return the report without what is of a single node or path: facts, NCCL's choice, probes that succeeded, cells.

    The picture of the matrix has a point for each cell.
    """
    matrix = report.matrix
    return replace(
        report,
        nodes=tuple(NodeEntry(node.host, node.node_rank, node.status) for node in report.nodes),
        probes=tuple(probe for probe in report.probes if probe.outcome != "ok"),
        nccl=(),
        matrix=replace(matrix, cells=()) if matrix is not None and len(matrix.cells) > MOST_CELLS else matrix,
    )


def _document(report: Report) -> dict[str, str]:
    """Return the report's JSON: as it is, or compressed where it is large."""
    data = encode(report)
    if len(data) <= _LARGEST_PLAIN:
        return {
            "type": "application/json",
            "text": _harmless(data.decode("utf-8", "backslashreplace")),
        }
    packed = base64.b64encode(gzip.compress(data, 6, mtime=0)).decode()
    return {"type": "application/gzip+base64", "text": packed}


def _packed(nodes: NodeTable) -> dict[str, Any]:
    """Return the node table for the script: lists, not objects with names."""
    return {
        "columns": nodes.columns,
        "groups": [
            [group.hosts, group.count, group.status, group.findings, group.worst, group.values]
            for group in nodes.groups
        ],
        "rows": [[row.host, row.node_rank, row.address, row.group] for row in nodes.rows],
    }


def _counts(report: Report) -> dict[str, int]:
    outcomes = [entry.outcome for entry in report.checks]
    severities = [finding.severity for finding in report.findings]
    return {
        "errors": severities.count("error"),
        "warnings": severities.count("warning"),
        "infos": severities.count("info"),
        "passed": outcomes.count("passed"),
        "not_known": outcomes.count("unknown") + outcomes.count("crashed"),
        "not_applicable": outcomes.count("not_applicable"),
        "nodes": len(report.nodes),
    }


def _settings(report: Report) -> str:
    """Return the lines that a shell takes."""
    lines = []
    for setting in report.advice.env:
        where = f", on {fold_hosts(setting.hosts)} only" if setting.hosts else ""
        lines += [plain(f"{comment(setting)}{where}"), plain(export(setting.name, setting.value))]
    return "\n".join(lines)
