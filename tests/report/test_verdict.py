"""The exit code: the first of 70, 130, 1, 4, 3 that applies, with every reason."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncclcheck.model.finding import CheckRun
from ncclcheck.report.verdict import verdict
from tests.report.reports import check_run, finding, found

PASSED = check_run("node-silent", code="NC101")
ERROR = found(finding("mtu-differs", "node02"))
WARNING = found(finding("mtu-differs", "node02", severity="warning"))
BENCH_ERROR = found(finding("bench-hang", "node02", code="NC801"))
CRASHED = check_run("env-differs", "crashed", "KeyError: 'x'", code="NC601")


@pytest.mark.parametrize(
    ("runs", "options", "code", "status"),
    [
        ([PASSED], {}, 0, "pass"),
        ([PASSED, ERROR], {}, 1, "fail"),
        ([PASSED, WARNING], {}, 0, "pass"),
        ([PASSED, WARNING], {"fail_on": "warning"}, 1, "fail"),
        ([PASSED, ERROR], {"fail_on": "never"}, 0, "pass"),
        ([PASSED, BENCH_ERROR], {}, 4, "fail"),
        ([PASSED, BENCH_ERROR, ERROR], {}, 1, "fail"),
        ([PASSED], {"silent": ["node03"]}, 3, "unknown"),
        ([PASSED, ERROR], {"silent": ["node03"]}, 1, "fail"),
        ([PASSED, BENCH_ERROR], {"silent": ["node03"]}, 4, "fail"),
        ([PASSED, CRASHED], {}, 3, "unknown"),
        ([PASSED, check_run("gpu-count", "unknown", code="NC401")], {}, 0, "pass"),
        ([PASSED, check_run("gpu-count", "unknown", code="NC401")], {"required": {"NC401"}}, 3, "unknown"),
        ([PASSED, check_run("gpu-count", "ignored", code="NC401")], {"required": {"NC401"}}, 3, "unknown"),
        (
            [PASSED, check_run("gpu-count", "not_applicable", code="NC401")],
            {"required": {"NC401"}},
            3,
            "unknown",
        ),
        ([PASSED], {"required": {"NC401"}}, 3, "unknown"),
        ([PASSED], {"required": {"NC101"}}, 0, "pass"),
        ([PASSED], {"not_done": ["the benchmark did not run"]}, 3, "unknown"),
        ([check_run("gpu-count", "unknown", code="NC401")], {}, 3, "unknown"),
        ([], {}, 3, "unknown"),
        ([PASSED, ERROR], {"interrupted": True}, 130, "unknown"),
        ([PASSED, ERROR], {"interrupted": True, "bug": "KeyError"}, 70, "error"),
    ],
)
def test_each_row_of_the_contract(
    runs: list[CheckRun], options: dict[str, Any], code: int, status: str
) -> None:
    answer = verdict(runs, **options)
    assert (answer.exit_code, answer.status) == (code, status)
    assert answer.reasons


def test_all_reasons_are_listed_the_deciding_one_first() -> None:
    answer = verdict([ERROR, BENCH_ERROR, CRASHED], silent=["node04", "node03"])
    assert answer.exit_code == 1
    assert answer.reasons == (
        "1 error: mtu-differs on node02",
        "the benchmark: 1 error: bench-hang on node02",
        "2 nodes did not report: node[03-04]",
        "the check env-differs crashed, which is a bug in ncclcheck: KeyError: 'x'",
    )


def test_many_findings_are_named_up_to_a_few() -> None:
    many = [found(finding(f"slug-{number}", "node01", code=f"NC2{number:02}")) for number in range(9)]
    (reason,) = verdict(many).reasons
    assert reason.startswith("9 errors: slug-0 on node01, ")
    assert reason.endswith(", 5 more")


def test_a_pass_says_what_could_not_be_told() -> None:
    unknown = check_run("gpu-count", "unknown", code="NC401")
    assert verdict([PASSED, unknown]).reasons == ("no errors: 1 check passed, 1 unknown",)


def test_a_required_check_that_did_not_run_says_why() -> None:
    unknown = check_run("gpu-count", "unknown", "no NVML", code="NC401")
    reasons = verdict([PASSED, unknown], required={"NC401"}).reasons
    assert reasons == ("the required check gpu-count did not run (unknown: no NVML)",)


@given(
    st.lists(st.sampled_from([PASSED, ERROR, WARNING, BENCH_ERROR, CRASHED])),
    st.lists(st.sampled_from(["node01", "node02"])),
    st.booleans(),
    st.none() | st.just("KeyError"),
)
def test_nothing_bad_ever_gives_zero(
    runs: list[CheckRun], silent: list[str], stopped: bool, bug: str | None
) -> None:
    answer = verdict(runs, silent=silent, interrupted=stopped, bug=bug)
    bad = bool({ERROR.slug + "error"} & {run.slug + run.findings[0].severity for run in runs if run.findings})
    bad = bad or BENCH_ERROR in runs or CRASHED in runs or bool(silent) or stopped or bug is not None
    if bad:
        assert answer.exit_code != 0
    if bug:
        assert answer.exit_code == 70
