"""Every format says the same: the verdict, and each finding with its hosts, whatever other machines call themselves."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from markdown_it import MarkdownIt

from ncclcheck.model.codec import decode
from ncclcheck.model.finding import Finding
from ncclcheck.model.formats.choices import SCREEN_FORMATS
from ncclcheck.model.report import Report
from ncclcheck.report.formats import WITH_TABLES, rendered
from ncclcheck.report.text.findings_text import merged_findings
from ncclcheck.report.text.fold import fold_hosts
from ncclcheck.report.text.plain import plain
from tests.further import mostly_further
from tests.report.hostile import reports
from tests.report.junit_rules import broken_rules
from tests.report.reports import finding, found, report

_LEVEL = re.compile(r"::(error|warning|notice) title=([^\n:,]*)::(.*)")


def squeezed(text: str) -> str:
    """Without white space, which formats are free to change, and with commands of GitHub as they were."""
    return re.sub(r"\s+", "", text).replace(r"\x23#[", "##[").replace(r"\x3a:", "::")


def test_every_suffix_and_every_screen_format_has_a_renderer() -> None:
    made = report()
    for format_ in {*WITH_TABLES.values(), *SCREEN_FORMATS}:
        assert rendered(made, format_)


# --- each format read back -----------------------------------------------------------------------------------------


def of_text(made: Report, text: str) -> str:
    assert text.splitlines()[-1].startswith(f"exit {made.verdict.exit_code}: ")
    return text


def of_json(made: Report, text: str) -> str:
    again = decode(text, Report)
    assert again == made
    return "".join(
        f"{finding.severity} {finding.slug} {plain(finding.summary)} {fold_hosts(finding.hosts)}"
        for finding in merged_findings(again.findings)
    )


def of_junit(made: Report, text: str) -> str:
    from junitparser import JUnitXml

    assert broken_rules(text) == []
    cases = [case for suite in JUnitXml.fromstring(text.encode()) for case in suite]
    is_red = any(case.is_failure or case.is_error for case in cases)
    assert is_red is (made.verdict.exit_code != 0)
    assert len({(case.classname, case.name) for case in cases}) == len(cases)
    green = {case.name for case in cases if case.is_passed}
    passed = {f"{check.code} {check.slug}" for check in made.checks if check.outcome == "passed"}
    assert green - {"verdict"} == passed
    return "".join(result.text for case in cases for result in case.result)


def of_markdown(made: Report, text: str) -> str:
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    heading = next(tokens[at + 1].content for at, token in enumerate(tokens) if token.type == "heading_open")
    assert heading.endswith(made.verdict.status)
    assert f"exit code {made.verdict.exit_code}" in text
    shown = []
    for token in tokens:
        if token.type == "html_block":
            assert re.fullmatch(r"(</?details>|<summary>[\w ]*</summary>|\s)*", token.content)
        for child in token.children or ():
            assert child.type in (
                "text",
                "code_inline",
                "softbreak",
                "strong_open",
                "strong_close",
                "html_inline",
            )
            assert child.type != "html_inline" or child.content == "<!-- -->"
            shown.append("" if child.type == "html_inline" else child.content)
    return "".join(shown)


def of_github(made: Report, text: str) -> str:
    lines = text.split("\n")[:-1]
    parts = [_LEVEL.fullmatch(line) for line in lines]
    assert all(parts), lines
    first = parts[0]
    assert first is not None
    assert (first[1] == "error") is (made.verdict.exit_code != 0)
    assert f"exit code {made.verdict.exit_code}" in first[2]
    unescaped = "\n".join(part[3].replace("%0A", "\n").replace("%25", "%") for part in parts if part)
    assert "\r" not in unescaped
    return unescaped


class _Page(HTMLParser):
    """What stands in the page as text, its scripts, and the tags that are in it."""

    def __init__(self) -> None:
        super().__init__()
        self.text: list[str] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.inside = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag not in ("img", "iframe", "object", "embed", "base", "form"), tag
        for name, value in attrs:
            assert not name.startswith("on"), (tag, name)
            assert name not in ("src", "action", "srcset"), (tag, name)
            assert name != "href" or (value or "").startswith(("#", "data:,")), value
        self.inside = tag if tag in ("script", "style") else ""
        if tag == "script":
            self.scripts.append((dict(attrs), ""))

    def handle_endtag(self, tag: str) -> None:
        self.inside = self.inside if tag != self.inside else ""

    def handle_data(self, data: str) -> None:
        if self.inside == "script":
            self.scripts[-1] = (self.scripts[-1][0], self.scripts[-1][1] + data)
        elif not self.inside:
            self.text.append(data)


def of_html(made: Report, text: str) -> str:
    page = _Page()
    page.feed(text)
    kinds = [attributes.get("type") for attributes, _ in page.scripts]
    charts = 1 if made.probes else 0
    assert kinds[:3] + kinds[4:] == [None, "application/json", None] + [None] * charts
    assert json.loads(page.scripts[1][1])["nodes"]["rows"][0][0] == plain(made.nodes[0].host)
    document = page.scripts[3][1]
    if kinds[3] == "application/gzip+base64":
        document = gzip.decompress(base64.b64decode(document)).decode()
    assert decode(document, Report) == made
    shown = "".join(page.text)
    assert f"exit code {made.verdict.exit_code}" in shown
    return shown


READERS: dict[str, Callable[[Report, str], str]] = {
    "text": of_text,
    "json": of_json,
    "junit": of_junit,
    "md": of_markdown,
    "github": of_github,
    "html": of_html,
}


def missing_in(shown: str, findings: list[Finding]) -> list[Finding]:
    """The findings of which severity, slug, sentence or hosts are not in what is shown."""
    text = squeezed(shown)
    return [
        one
        for one in findings
        if any(
            squeezed(part) not in text
            for part in (
                one.severity,
                one.slug,
                plain(one.summary),
                fold_hosts(one.hosts) if one.hosts else "",
            )
        )
    ]


@pytest.mark.slow
@given(made=reports())
@settings(max_examples=15, deadline=None)
def test_the_verdict_and_every_finding_are_in_every_format(made: Report) -> None:
    for format_, read in READERS.items():
        shown = read(made, rendered(made, format_))  # type: ignore[arg-type]
        assert missing_in(shown, merged_findings(made.findings)) == [], format_


@pytest.mark.slow
@pytest.mark.parametrize("format_", mostly_further(READERS, 1))  # mark.further
def test_ten_thousand_findings_are_all_there(format_: str) -> None:
    many = [
        finding("mtu-differs", f"node{number:05}", summary=f"fault {number:05}x") for number in range(10_000)
    ]
    made = report([found(*many)])
    shown = READERS[format_](made, rendered(made, format_))  # type: ignore[arg-type]
    assert set(re.findall(r"fault (\d{5})x", shown)) >= {f"{number:05}" for number in range(10_000)}


def test_characters_that_xml_does_not_know_are_written_out() -> None:
    made = report([found(finding("mtu-differs", "node\ufffe", summary="a\uffffb\x0bc"))])
    text = rendered(made, "junit")
    assert broken_rules(text) == []
    failure = ElementTree.fromstring(text.encode()).find(".//failure[@type='error']")  # noqa: S314 (our own)
    assert failure is not None
    assert failure.get("message") == "error: a\\uffffb\\x0bc on node\\ufffe"
