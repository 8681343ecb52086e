"""Nothing that a report says is lost in a format: not the benchmark, not the settings, not why something is unknown."""

from __future__ import annotations

import html
import re
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from ncclcheck.model.bench import WrongElement
from ncclcheck.model.benchmarks.ceiling import Comparable, Reference
from ncclcheck.model.events import LogFile
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import Evidence
from ncclcheck.model.report import Advice, LogReport, Report, Used
from ncclcheck.model.snapshot import Probe
from ncclcheck.report.formats import Format, rendered
from ncclcheck.report.text.page import draw_plain
from ncclcheck.report.text.sections import reach_lines, sections
from tests.report.reports import report
from tests.report.samples import full_report

# What is named otherwise, or told by another part: the place of a thing in the document, not its words.
_NOT_WORDS = re.compile(
    r"schema_version|created|\.op$|dtype|backend|hosts?\b|nodes\[|subject|nccl\[|probes|places|plan|reference\.(gpu|note)"
)
# The annotations of GitHub are a selection: what passed or does not apply is left out, as it is in text without -v.
_LEFT_OUT: dict[Format, str] = {
    "text": r"checks\[\d+\]\.title|^\.command",  # of a check that found something, the finding says more
    "github": r"checks\[1\]|bench\.used|checks\[\d+\]\.title|tool\.version|limited_by|harmless|files",
}


def fuller_report() -> Report:
    """Also with published figures, a wrong element, what the NCCL log of the benchmark told, and what logs told."""
    made = full_report(2, per_node=2)
    assert made.bench is not None
    first, *others = made.bench.points
    row = Reference(
        "H100", 8, 1, "nvlink", first.op, first.size_bytes, 18.0, "A", "a file", "2024", note="ring"
    )
    bench = replace(
        made.bench,
        points=(replace(first, first_wrong=WrongElement(3, 1, 7, "nan", "1.5"), unstable="varies"), *others),
        references=(Comparable(row, first.size_bytes, first.busbw_gb_s),),
        used=(Used("network", "IB"), Used("channels", "16", ("node01",))),
    )
    log = LogReport(
        "named",
        (LogFile("job.log", 10, 1),),
        (Used("version", "2.27.7", differs=True),),
        (Evidence((), "a line", "seen", "it is normal", "job.log:3"),),
    )
    kept = tuple(check for check in made.checks if check.slug in ("gpu-count", "pcie-acs", "fabric-manager"))
    return replace(made, bench=bench, log=log, checks=kept)


def marked(value: Any, path: str, marks: dict[str, str]) -> Any:
    """The same with a word of its own in place of each text; `marks` then tells which word stands where."""
    if isinstance(value, msgspec.Struct):
        changed = {
            field.name: new
            for field in msgspec.structs.fields(type(value))
            if (old := getattr(value, field.name))
            is not (new := _marked(field.type, old, f"{path}.{field.name}", marks))
        }
        return replace(value, **changed) if changed else value
    return value


def _marked(kind: Any, value: Any, path: str, marks: dict[str, str]) -> Any:
    if isinstance(value, tuple):
        return tuple(_marked(str, one, f"{path}[{at}]", marks) for at, one in enumerate(value))
    if not isinstance(value, str):
        return marked(value, path, marks)
    if kind not in (str, str | None) or _NOT_WORDS.search(path) or not value:
        return value
    word = f"zq{len(marks)}qz"
    marks[word] = path
    return word


def shown(made: Report, format_: Format) -> str:
    text = html.unescape(rendered(made, format_, 1))
    return text.partition('id="page-data"')[0]  # of a page what is to be read, not its data


@pytest.mark.parametrize("format_", ["text", "junit", "md", "github", "html"])
def test_every_word_of_a_report_is_in_every_format(format_: Format) -> None:
    made = fuller_report()
    lost = []
    of_logs = replace(
        made, bench=None, comparison=None, advice=Advice(), coverage=Missing("absent", ""), nodes=(), nccl=()
    )
    for one in (replace(made, log=None), replace(of_logs, checks=())):
        marks: dict[str, str] = {}
        text = shown(marked(one, "", marks), format_)
        assert len(marks) > 20
        lost += [path for word, path in marks.items() if word not in text]
    left_out = _LEFT_OUT.get(format_)
    assert "\n".join(path for path in lost if not (left_out and re.search(left_out, path))) == ""


@pytest.mark.parametrize("format_", ["text", "junit", "md", "github", "html"])
def test_the_figures_of_a_point_are_in_every_format(format_: Format) -> None:
    made = fuller_report()
    assert made.bench is not None
    point = replace(
        made.bench.points[0], count=987654, busbw_low_gb_s=31.25, busbw_high_gb_s=33.75, first_us=4321.5
    )
    bench = replace(made.bench, points=(point,))
    text = shown(replace(made, log=None, bench=bench), format_)
    assert [word for word in ("987654", "31.25-33.75", "32.01") if word not in text] == []
    assert format_ in ("text", "junit", "github") or "4322" in text


def test_each_section_has_a_title_and_none_is_empty() -> None:
    made = dict(sections(fuller_report(), 1))
    assert list(made) == [
        "what NCCL chooses", "reach", "measured between the nodes", "as-is and advised", "benchmark",
        "logs that were read", "really used",
        "harmless, although it looks like trouble", "settings to use",
    ]  # fmt: skip
    assert all(text.endswith("\n") and text.strip() for text in made.values())
    assert dict(sections(replace(report(), nccl=(), probes=()), 1)).keys() <= {"reach"}


def test_attempts_that_failed_are_counted_by_kind() -> None:
    failed = [
        Probe("tcp", "a", "b", "eth0", "10.0.0.1", 1, "filtered"),
        Probe("tcp", "b", "a", "eth0", "10.0.0.2", 1, "filtered"),
        Probe("mtu", "b", "a", "eth0", "10.0.0.2", 1, "stalled"),
        Probe("tcp", "b", "c", "eth0", "10.0.0.3", 1, "ok"),
    ]
    text = draw_plain(reach_lines(replace(report(), probes=tuple(failed))))
    assert text.endswith("attempts that failed: 1 x mtu stalled, 2 x tcp filtered\n")
