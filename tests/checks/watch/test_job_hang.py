"""The checks of `watch`: a hang, a death and a pause, each by its own check."""

from __future__ import annotations

import pytest

from ncclcheck.checks.registry import all_checks, run_check
from ncclcheck.model.job.watched import BlockedLink, Frame, StackGroup, Watch, WatchDecision, WatchedRank
from ncclcheck.model.snapshot import Snapshot

CULPRIT = WatchedRank(1, "b", 9, "/home/me/train.py", 33, "evaluate")
GROUP = StackGroup((1,), (Frame("/home/me/train.py", 33, "evaluate"),), False)


def _outcomes(snapshot: Snapshot) -> dict[str, str]:
    return {check.slug: run_check(check, snapshot).outcome for check in all_checks("job")}


@pytest.mark.parametrize(
    ("decision", "slug", "severity"),
    [
        ("hang", "job-hang", "error"),
        ("stopped", "job-hang", "error"),
        ("died", "job-died", "error"),
        ("quiet", "job-quiet", "info"),
    ],
)
def test_each_decision_is_the_finding_of_one_check(decision: WatchDecision, slug: str, severity: str) -> None:
    watch = Watch(decision, 61.0, (CULPRIT,), (0,), ("/e/rank-1.stacks.json",), (GROUP,), "all_reduce")
    snapshot = Snapshot(nodes=(), watch=watch)
    outcomes = _outcomes(snapshot)
    assert outcomes.pop(slug) == "found"
    assert set(outcomes.values()) == {"passed"}
    (finding,) = next(
        run_check(check, snapshot) for check in all_checks("job") if check.slug == slug
    ).findings
    assert (finding.severity, finding.hosts) == (severity, ("b",))
    assert finding.evidence[0].observed == "evaluate (/home/me/train.py:33)"
    assert finding.evidence[-1].observed == "/e/rank-1.stacks.json"


def test_without_a_culprit_the_silent_node_or_the_ends_of_the_blocked_path_are_named() -> None:
    link = BlockedLink("a", "c", 0, 48)
    for watch, hosts in (
        (Watch("hang", 61.0, victims=(0, 1), silent=("c",), blocked=(link,)), ("c",)),
        (Watch("hang", 61.0, victims=(0, 1), blocked=(link, BlockedLink("b", "c", 1, 0))), ("a", "c")),
        (Watch("silent", 15.0, silent=("c",)), ("c",)),
    ):
        checks = [check for check in all_checks("job") if check.slug == "job-hang"]
        (finding,) = run_check(checks[0], Snapshot(nodes=(), watch=watch)).findings
        assert finding.hosts == hosts


def test_a_job_that_advances_passes_and_no_job_is_nothing_to_judge() -> None:
    assert set(_outcomes(Snapshot(nodes=(), watch=Watch("ok"))).values()) == {"passed"}
    assert set(_outcomes(Snapshot(nodes=())).values()) == {"not_applicable"}
