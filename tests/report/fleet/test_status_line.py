"""The line for node-problem-detector and Nagios: its exit code, its length, and that it is one line."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ncclcheck.model.finding import CheckRun
from ncclcheck.model.formats.choices import PROTOCOLS, Protocol
from ncclcheck.model.report import Report
from ncclcheck.report.fleet.status_line import (
    MOST_BYTES,
    status_code,
    status_line,
    unknown_line,
)
from ncclcheck.report.text.plain import plain
from tests.report.hostile import TEXT, reports
from tests.report.reports import check_run, finding, found, report

PASSED = [check_run("node-silent", code="NC101")]
WARNED = [found(finding("shm-small", "node01", severity="warning")), *PASSED]
BAD = [found(finding("mtu-differs", "node01", summary="the MTU of eth0 is 1400")), *WARNED]
_PERFORMANCE = re.compile(
    r"[^|\n]+\|errors=\d+ warnings=\d+ unknown=\d+ time=\d+\.\ds\n"
)  # the guidelines: 'label'=value[UOM]


def benched() -> list[CheckRun]:
    return [found(finding("bench-hang", "node01", code="NC801")), *PASSED]


@pytest.mark.parametrize(
    ("runs", "options", "npd", "nagios"),
    [
        (PASSED, {}, 0, 0),
        (WARNED, {}, 0, 1),
        (BAD, {}, 1, 2),
        (benched(), {}, 1, 2),  # our 4
        (WARNED, {"fail_on": "warning"}, 1, 2),
        (BAD, {"fail_on": "never"}, 0, 1),
        ([], {}, 2, 3),  # our 3: nothing could run
        (PASSED, {"interrupted": True}, 2, 3),
        (BAD, {"bug": "KeyError"}, 2, 3),  # a bug of ours says nothing about the node
    ],
)
def test_the_exit_code_is_that_of_the_protocol(
    runs: list[CheckRun], options: dict[str, Any], npd: int, nagios: int
) -> None:
    made = report(runs, **options)
    assert (status_code(made, "npd"), status_code(made, "nagios")) == (npd, nagios)


def test_the_worst_finding_comes_first_and_the_others_are_counted() -> None:
    assert status_line(report(BAD), "npd") == "mtu-differs (+1): the MTU of eth0 is 1400\n"
    assert (
        status_line(report(BAD), "nagios")
        == "CRITICAL: mtu-differs (+1): the MTU o...|errors=1 warnings=1 unknown=0 time=3.1s\n"
    )
    assert status_line(report(PASSED), "npd") == "1 check passed\n"
    assert status_line(report([]), "npd") == "no check could run\n"
    assert status_line(report(WARNED), "nagios").partition("|")[0] == "WARNING: shm-small: shm-small is wrong"


def test_a_bug_is_told_and_no_finding_is() -> None:
    assert status_line(report(BAD, bug="KeyError"), "npd") == "a bug in ncclcheck: KeyError\n"


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(reports(), st.sampled_from(PROTOCOLS))
def test_it_is_one_harmless_line_of_80_bytes(made: Report, protocol: Protocol) -> None:
    text = status_line(made, protocol)
    assert len(text.removesuffix("\n").encode()) <= MOST_BYTES
    assert text.count("\n") == 1
    assert plain(text.removesuffix("\n")) == text.removesuffix("\n")
    if protocol == "nagios":
        assert _PERFORMANCE.fullmatch(text)


@given(TEXT | st.text(), st.sampled_from(PROTOCOLS))
def test_what_has_no_report_is_one_line_too(why: str, protocol: Protocol) -> None:
    text = unknown_line(protocol, why)
    assert len(text.removesuffix("\n").encode()) <= MOST_BYTES
    assert text.count("\n") == 1
