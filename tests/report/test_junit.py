"""JUnit XML as CI systems read it."""

from __future__ import annotations

from junitparser import JUnitXml, TestCase

from ncclcheck.model.report import Report
from ncclcheck.report.junit import to_junit
from tests.report.junit_rules import broken_rules
from tests.report.reports import check_run, finding, found, mtu_finding, report
from tests.report.samples import full_report


def cases(made: Report) -> dict[str, TestCase]:
    text = to_junit(made)
    assert broken_rules(text) == []
    return {case.name: case for suite in JUnitXml.fromstring(text.encode()) for case in suite}


def test_a_failed_check_holds_its_findings_with_their_fixes() -> None:
    of = cases(report([found(mtu_finding()), check_run("node-silent", code="NC101")]))
    failed = of["NC213 mtu-differs"]
    assert failed.is_failure
    assert failed.classname == "ncclcheck.preflight.NC2"
    assert "ip link set dev eth0 mtu 9000" in failed.result[0].text
    assert of["NC101 node-silent"].is_passed
    assert of["verdict"].is_failure


def test_what_could_not_be_told_is_neither_green_nor_lost() -> None:
    of = cases(
        report([check_run("mtu-differs", "unknown", "no facts of node03"), check_run("x", code="NC101")])
    )
    unknown = of["NC213 mtu-differs"]
    assert unknown.is_skipped
    assert unknown.result[0].message == "unknown: no facts of node03"
    assert of["verdict"].is_passed


def test_a_run_that_could_not_tell_is_red() -> None:
    of = cases(report([check_run("mtu-differs", "unknown", "no facts")], require=["mtu-differs"]))
    assert of["NC213 mtu-differs"].is_error
    assert of["verdict"].is_error


def test_warnings_below_the_gate_are_shown_and_do_not_fail() -> None:
    of = cases(report([found(finding("mtu-differs", "node02", severity="warning"))]))
    assert of["NC213 mtu-differs"].is_skipped
    assert of["NC213 mtu-differs"].result[0].message == "warning: mtu-differs is wrong on node02"
    assert of["verdict"].is_passed


def test_the_counts_are_those_of_the_cases() -> None:
    root = JUnitXml.fromstring(to_junit(full_report(8)).encode())
    (suite,) = root
    assert (root.tests, root.failures, root.errors) == (suite.tests, suite.failures, suite.errors)
    assert suite.tests == len(list(suite)) == 14
    assert (suite.failures, suite.errors, suite.skipped) == (3, 1, 4)


def test_two_checks_of_one_name_stay_two() -> None:
    of = cases(report([check_run("x"), check_run("x", "unknown", "why")]))
    assert {"NC213 x", "NC213 x (2)"} <= set(of)


def test_the_rules_refuse_what_the_schema_refuses() -> None:
    assert broken_rules("<testsuites skipped='1'/>") == ["testsuites has no attribute skipped"]
    broken = "<testsuite name='a' tests='1' failures='0'>x<testcase/></testsuite>"
    assert broken_rules(broken) == [
        "testsuite lacks errors",
        "text in testsuite",
        "testcase lacks name",
    ]
    assert broken_rules("<html/>") == ["the root is html"]
