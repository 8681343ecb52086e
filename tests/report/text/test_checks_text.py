"""Checks that could not tell are never shown as passed."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.model.finding import CheckRun
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.report.text.checks_text import fold_reason, quiet_check_lines, unknown_lines
from ncclcheck.report.text.page import draw
from tests.builders import cluster, left_alone, seen_alone, with_silent
from tests.report.reports import check_run, finding, found, report

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


NOT_MET = [
    check_run(
        "master-foreign", "unknown", "only this node's own attempt is known: it did not join the others"
    ),
    check_run("mtu-differs", "unknown", "the nodes did not meet"),
    check_run(
        "gpu-count",
        "unknown",
        "this node did not meet the others; gpus of node02: denied: NVML",
        code="NC401",
    ),
]


def text(runs: list[CheckRun], snapshot: Snapshot, verbose: int = 0) -> list[str]:
    made = report(runs, snapshot=snapshot)
    return draw(unknown_lines(made, verbose), width=None, color=False).splitlines()


def test_that_the_nodes_did_not_meet_is_said_once_and_not_by_each_check() -> None:
    assert text(NOT_MET, seen_alone(cluster(4), "node02")) == [
        "unknown  the nodes did not meet: 2 checks unknown (-v lists them)",
        "unknown  NC401 gpu-count: gpus of node02: denied: NVML",
    ]
    assert len(text(NOT_MET, seen_alone(cluster(4), "node02"), verbose=1)) == 3


def test_that_node_0_was_lost_is_said_once_and_not_by_each_check() -> None:
    told = "node 0 (node01) was lost after the connection tests"
    runs = [check_run(slug, "unknown", told) for slug in ("a", "b")]
    runs.append(check_run("c", "unknown", f"only this node's own attempt is known: {told}"))
    assert text(runs, left_alone(cluster(4), "node02", "after the connection tests")) == [
        f"unknown  {told}: 3 checks unknown (-v lists them)"
    ]


def test_that_a_node_was_silent_is_said_once() -> None:
    runs = [check_run(slug, "unknown", "node04: did not report") for slug in ("a", "b", "c")]
    assert text(runs, with_silent(cluster(4), "node04")) == [
        "unknown  node04 did not report: 3 checks unknown (-v lists them)"
    ]


def test_part_of_a_check_that_the_common_cause_explains_is_not_told_again() -> None:
    partly = replace(found(finding("x-y", "node02")), reason="this node did not meet the others")
    assert text([partly, *NOT_MET[:2]], seen_alone(cluster(4), "node02")) == [
        "unknown  the nodes did not meet: 2 checks unknown (-v lists them)"
    ]


def test_that_nobody_reported_is_said_once_with_the_number_of_checks() -> None:
    runs = [check_run(f"check-{number}", "unknown", "no node reported") for number in range(94)]
    runs.append(check_run("route-x", "unknown", "no connection was tried; no node reported"))
    runs.append(replace(found(finding("host-unreachable")), reason="no node reported"))
    nobody = with_silent(with_silent(cluster(2), "node01"), "node02")
    assert text(runs, nobody) == ["unknown  node[01-02] did not report: 95 checks unknown (-v lists them)"]
    assert "check-93" in "\n".join(text(runs, nobody, verbose=1))


def test_of_many_checks_with_one_reason_the_first_are_named() -> None:
    runs = [check_run(f"check-{number}", "unknown", "nobody knows", code="NC401") for number in range(94)]
    (told,) = text(runs, cluster(2))
    assert told.startswith("unknown  NC401 check-0, NC401 check-1, ")
    assert told.endswith("NC401 check-7, and 86 more checks (-v lists them): nobody knows")
    (all_of_them,) = text(runs, cluster(2), verbose=1)
    assert all_of_them.count("check-") == 94
