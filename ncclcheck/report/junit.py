"""The report as JUnit XML: one test case per check, and one for the verdict, so that CI is red where we exit non-zero.

Elements and attributes are those of Jenkins' schema (jenkinsci/xunit-plugin, model/xsd/junit-10.xsd), which GitLab and
GitHub's actions read too. GitLab tells test cases apart by class name and name, so no two are called the same.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ncclcheck.model.formats.prose import plural
from ncclcheck.model.report import Report
from ncclcheck.report.gate import CheckCase, check_cases
from ncclcheck.report.sections import asides
from ncclcheck.report.text.findings_text import merged_findings, one_finding
from ncclcheck.report.text.fold import fold_hosts
from ncclcheck.report.text.page import draw_plain
from ncclcheck.report.text.plain import plain, without_commands

if TYPE_CHECKING:
    from junitparser import TestCase

# XML 1.0, production 2 (Char): everything else may not even be written as a reference.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LONGEST_S = 1e9  # xs:string with a pattern of plain digits: no exponent


class Case(CheckCase, frozen=True):
    """A test case: its names, how it ended, the sentence and the whole text."""

    class_name: str = ""
    name: str = ""
    message: str = ""
    text: str = ""


def to_junit(report: Report) -> str:
    """Return the XML document, with a final newline.

    Failures and errors are there exactly where the exit code is not 0: the verdict's own test case is one of them. What
    is no check (the benchmark, the settings to use) is the output of the suite.
    """
    from junitparser import JUnitXml, TestSuite
    from junitparser.junitparser import SystemOut

    cases = list(_unique(_cases(report)))
    suite = TestSuite(_xml(f"{report.tool.name} {report.command}"))
    suite.timestamp = _xml(report.created)
    for name, value in _properties(report):
        suite.add_property(_xml(name), _xml(value))
    suite.add_testcases([_element(case) for case in cases])
    beside = "\n".join(f"{title}\n{text}" for title, text in asides(report, 1))
    if beside:
        suite.append(SystemOut(_xml(beside, lines=True)))  # type: ignore[no-untyped-call]
    suite.time = _seconds(report.elapsed_s)  # update_statistics has put the sum of the checks there
    root = JUnitXml(_xml(report.tool.name))
    root.add_testsuite(suite)
    # Not update_statistics: it would add "skipped", which the schema does not know here.
    root.tests, root.failures, root.errors = suite.tests, suite.failures, suite.errors
    root.time = _seconds(report.elapsed_s)
    text: str = root.tostring().decode("utf-8")  # type: ignore[no-untyped-call]
    for tag in ("<testsuite ", "<testcase "):  # no value holds a raw "<"
        text = text.replace(tag, f"\n{tag}")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _properties(report: Report) -> Iterator[tuple[str, str]]:
    yield "ncclcheck.version", report.tool.version
    yield "ncclcheck.exit_code", str(report.verdict.exit_code)
    yield "ncclcheck.status", report.verdict.status
    yield "ncclcheck.nodes", fold_hosts(node.host for node in report.nodes)


def _cases(report: Report) -> Iterator[Case]:
    yield _verdict_case(report)
    for case in check_cases(report):
        family = case.code[:3] if re.fullmatch(r"NC\d+", case.code) else "NC"
        yield Case(
            code=case.code,
            slug=case.slug,
            title=case.title,
            judged=case.judged,
            why=case.why,
            seconds=case.seconds,
            findings=case.findings,
            class_name=f"{report.tool.name}.{report.command}.{family}",
            name=f"{case.code} {case.slug}",
            message=_message(case),
            text=_text(case),
        )


def _verdict_case(report: Report) -> Case:
    verdict = report.verdict
    judged = "passed" if verdict.exit_code == 0 else "failed" if verdict.status == "fail" else "error"
    reasons = verdict.reasons or ("no reason was given",)
    return Case(
        code="",
        slug="verdict",
        title="the verdict",
        judged=judged,  # type: ignore[arg-type]  # mypy takes the conditional for str
        why=verdict.status,
        seconds=0.0,
        class_name=f"{report.tool.name}.{report.command}",
        name="verdict",
        message=f"exit {verdict.exit_code}: {reasons[0]}",
        text="".join(f"{plain(reason)}\n" for reason in reasons),
    )


def _message(case: CheckCase) -> str:
    if not case.findings:
        return case.why or case.title
    first = case.findings[0]
    where = f" on {fold_hosts(first.hosts)}" if first.hosts else ""
    more = f" (and {plural(len(case.findings) - 1, 'more finding')})" if len(case.findings) > 1 else ""
    return f"{first.severity}: {first.summary}{where}{more}"


def _text(case: CheckCase) -> str:
    parts = [draw_plain(one_finding(finding, 1)) for finding in merged_findings(case.findings)]
    if case.why:
        in_part = "in part not known: " if case.findings else ""
        parts.append(f"{in_part}{plain(case.why)}\n")
    return "\n".join(parts)


def _element(case: Case) -> TestCase:
    from junitparser import Error, Failure, Skipped, TestCase

    element = TestCase(_xml(case.name), _xml(case.class_name), _seconds(case.seconds))
    if case.judged == "passed":
        element.system_out = _xml(f"{case.title}\n{case.text}", lines=True)
        return element
    kind = {"failed": Failure, "error": Error, "skipped": Skipped}[case.judged]
    types = {finding.severity for finding in case.findings}
    worst = next((word for word in ("error", "warning", "info") if word in types), case.judged)
    result = kind(_xml(case.message), worst)
    result.text = _xml(f"{case.title}\n\n{case.text}", lines=True)
    element.result = [result]
    return element


def _unique(cases: Iterable[Case]) -> Iterator[Case]:
    from msgspec.structs import replace

    taken: set[tuple[str, str]] = set()
    for case in cases:
        name, number = case.name, 1
        while (case.class_name, name) in taken:
            number += 1
            name = f"{case.name} ({number})"
        taken.add((case.class_name, name))
        yield replace(case, name=name)


def _xml(text: str, *, lines: bool = False) -> str:
    safe = "\n".join(map(without_commands, text.split("\n"))) if lines else without_commands(plain(text))
    return _NOT_XML.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), safe)


def _seconds(seconds: float) -> float:
    return round(min(max(seconds, 0.0), _LONGEST_S), 3) if math.isfinite(seconds) else 0.0
