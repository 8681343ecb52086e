"""Nothing that a report says is lost in a format: no section, not the settings, not why something is unknown."""

from __future__ import annotations

import functools
import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import NODEFAULT
from msgspec.structs import fields, replace

from ncclcheck.model.fact import Missing
from ncclcheck.model.report import Advice, Report
from ncclcheck.report.formats import Format, rendered
from ncclcheck.report.html import html as html_page
from ncclcheck.report.sections import SECTIONS, ReportSection, asides, heading
from ncclcheck.report.text.page import draw_plain
from tests.report.reports import report
from tests.report.whole_report import LOG, fuller_report, whole_report

# What is named otherwise, or told by another part: the place of a thing in the document, not its words.
_NOT_WORDS = re.compile(
    r"schema_version|created|\.op$|dtype|backend|hosts?\b|nodes\[|subject|nccl\[|probes|places|plan|reference\.(gpu|note)"
)
# The annotations of GitHub are a selection: what passed or does not apply is left out, as it is in text without -v.
_LEFT_OUT: dict[Format, str] = {
    "text": r"checks\[\d+\]\.title|^\.command",  # of a check that found something, the finding says more
    "github": r"checks\[1\]|bench\.used|checks\[\d+\]\.title|tool\.version|limited_by|harmless|files",
}


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
    text = rendered(made, format_, 1).partition('id="page-data"')[
        0
    ]  # of a page what is to be read, not its data
    return html.unescape(text)


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


# Words of each section.
WORDS = {
    "findings": "the first large all-reduce hangs",
    "fleet": "4 reports, 2026-11-22T11:00:00+00:00 to 2026-11-22T12:00:00+00:00",
    "not-known": "NVML did not answer in 10 s",
    "settings": "unset NCCL_IB_HCA",
    "nodes": "silent",
    "nccl": "eth0",
    "reach": "round trip",
    "comparison": "advised is faster: 5.70 times as fast",
    "bench": "IB mlx5_0:1",
    "groups": "takes 2000 us, where 1000 us is usual",
    "trials": "GLOO_SOCKET_IFNAME=fast: advised: faster at all_reduce 1M",
    "pairs": "srun --exclude=node03",
    "matrix": "leaf02: node[03-04]",
    "soak": "soak: 40 blocks",
    "mesh": "least possible",
    "log": "2.27.7",
    "checks": "the title of peer-filtered",
}
FORMATS: tuple[Format, ...] = ("text", "md", "html", "junit", "github")
# Test cases and messages name their nodes, and annotations are a selection: what passed is none.
_NOT_PRINTED: dict[Format, tuple[str, ...]] = {"junit": ("nodes",), "github": ("nodes", "checks")}
# `watch` is told by its findings, `of` by the words of the header, `gpus` by a remark; `explain` alone has a log.
_NO_SECTION = {"watch", "of", "gpus", "bench.gpus", "log"}


def each_without_a_part(struct: Any) -> Iterator[tuple[str, Any]]:
    """Yield the name of each part that may be absent, and the record without it."""
    for field in fields(type(struct)):
        if field.default is not NODEFAULT:
            assert field.name in _NO_SECTION or getattr(struct, field.name) != field.default, field.name
            yield field.name, replace(struct, **{field.name: field.default})


@functools.cache
def document(format_: Format, *, of_logs: bool) -> str:
    """Return the whole report; what `explain` prints is a page of its own, and no run has a log."""
    made = whole_report()
    return shown(replace(made, log=LOG) if of_logs else made, format_)


def own_part(section: ReportSection, format_: Format) -> str:
    """Return what the document has of that section, as far as it can be told apart from the others."""
    whole = document(format_, of_logs=section.name == "log")
    if format_ == "html":
        return whole.partition(f'<section id="{section.name}"')[2].partition("</section>")[0]
    if format_ in ("text", "md") and section.name == "nodes":
        return whole.partition("\n\n##")[0] if format_ == "md" else whole.splitlines()[0]
    if format_ == "md":
        title = heading(section, whole_report())
        return whole.partition(f"\n## {title}\n\n")[2].partition("\n## ")[0].replace("<!-- -->", "")
    return whole.replace("%0A", "\n")


def test_each_section_has_words_that_are_looked_for() -> None:
    assert list(WORDS) == [section.name for section in SECTIONS]


def test_each_section_has_a_rendering_in_each_format() -> None:
    """Only the nodes are told by the header, and only what is a test case or a message has no aside."""
    for section in SECTIONS:
        made = replace(whole_report(), log=LOG)
        told = {
            "text": bool(draw_plain(section.text(made, 1))),
            "markdown": bool("".join(section.markdown(made))),
            "html": f'<a href="#{section.name}">' in document("html", of_logs=True),
        }
        missing = {"text", "markdown"} if section.name == "nodes" else set()
        assert {format_ for format_, is_told in told.items() if not is_told} == missing, section.name
    assert [section.name for section in SECTIONS if section.aside is None] == [
        "findings", "not-known", "nodes", "checks",
    ]  # fmt: skip


def test_each_template_is_that_of_a_section() -> None:
    templates = (Path(html_page.__file__).parent / "web" / "sections").iterdir()
    assert {path.name for path in templates} == {f"{section.html}.html.jinja" for section in SECTIONS}


@pytest.mark.parametrize("format_", FORMATS)
def test_a_report_with_every_section_prints_each_in_each_format(format_: Format) -> None:
    left_out = _NOT_PRINTED.get(format_, ())
    lost = [
        section.name
        for section in SECTIONS
        if section.name not in left_out and WORDS[section.name] not in own_part(section, format_)
    ]
    assert lost == []


@pytest.mark.parametrize("format_", FORMATS)
def test_each_part_of_a_report_changes_each_format(format_: Format) -> None:
    """A field that is new in `Report` or in its benchmark is printed, or stands in `_NO_SECTION`."""
    made = replace(whole_report(), probes=())  # no charts, which take time
    assert made.bench is not None
    without = dict(each_without_a_part(made))
    without |= {
        f"bench.{name}": replace(made, bench=bench) for name, bench in each_without_a_part(made.bench)
    }
    whole, of_one_run = shown(made, format_), shown(replace(made, fleet=None), format_)
    for name in without.keys() - _NO_SECTION:
        if name == "authentication":  # not of several runs
            assert shown(replace(without[name], fleet=None), format_) != of_one_run
        else:
            assert shown(without[name], format_) != whole, f"no section of {format_} has {name}"


def test_asides_have_a_title_and_none_is_empty() -> None:
    made = dict(asides(fuller_report(), 1))
    assert list(made) == [
        "what NCCL chooses", "between the nodes", "as-is and advised", "benchmark", "logs", "settings to use",
    ]  # fmt: skip
    assert all(text.endswith("\n") and text.strip() for text in made.values())
    assert dict(asides(replace(report(), nccl=(), probes=()), 1)).keys() <= {"between the nodes"}
