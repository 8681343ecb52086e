"""Checks that could not tell are never shown as passed."""

from __future__ import annotations

from ncclcheck.report.checks_text import fold_reason, quiet_check_lines, unknown_lines
from ncclcheck.report.page import draw
from tests.report.reports import check_run, report

HOSTS = {"node01", "node02", "node03"}


def test_equal_reasons_of_several_hosts_are_said_once() -> None:
    reason = "gpus of node01: absent: no NVML; gpus of node02: absent: no NVML; node03: it did not report"
    assert fold_reason(reason, HOSTS) == "gpus of node[01-02]: absent: no NVML; node03: it did not report"


def test_a_sentence_with_a_colon_is_no_host() -> None:
    assert fold_reason("warning: something of note: here", HOSTS) == "warning: something of note: here"


def test_a_long_reason_is_cut_and_says_so() -> None:
    reason = "; ".join(f"gpus of node01: {number}" for number in range(9))
    assert fold_reason(reason, HOSTS).endswith("; and 5 more: -v shows all")
    assert fold_reason(reason, HOSTS, verbose=1).endswith("gpus of node01: 8")


def test_unknown_and_crashed_checks_are_listed_with_their_reason() -> None:
    runs = [
        check_run("gpu-count", "unknown", "gpus of node01: denied: NVML", code="NC401"),
        check_run("gpu-busy", "unknown", "gpus of node01: denied: NVML", code="NC402"),
        check_run("env-differs", "crashed", "KeyError: 'x'", code="NC601"),
    ]
    assert draw(unknown_lines(report(runs), 0), width=None, color=False).splitlines() == [
        "crashed  NC601 env-differs: a bug in ncclcheck, please report it: KeyError: 'x'",
        "unknown  NC401 gpu-count, NC402 gpu-busy: gpus of node01: denied: NVML",
    ]


def test_passed_checks_are_listed_only_when_asked_for() -> None:
    made = report([check_run("node-silent", code="NC101"), check_run("mtu-differs", "ignored", "--ignore")])
    assert list(quiet_check_lines(made, 0)) == []
    assert draw(quiet_check_lines(made, 1), width=None, color=False).splitlines() == [
        "passed  NC101 node-silent: the title of node-silent",
        "ignored  NC213 mtu-differs: the title of mtu-differs (--ignore)",
    ]
