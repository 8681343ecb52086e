"""The declaration of causes, and suspects with their evidence."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from ncclcheck.checks.logs._causes import Suspect, cause, seen, spread, suspect
from ncclcheck.checks.registry import Check, all_checks, run_check
from ncclcheck.model.events import Log, LogFile, LogPosition, Remark
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import CheckRun, Fix
from ncclcheck.model.snapshot import Snapshot
from tests.checks.logs.explaining import assert_cause, explain

SECTIONS = ("## Why it matters", "## How to fix", "## Source")


def remark(text: str, rank: int | None = None, line: int = 1) -> Remark:
    return Remark(LogPosition("job.log", line, rank, "n1"), text, "oom")


def test_without_a_log_no_cause_applies() -> None:
    outcomes = {run_check(check, Snapshot(nodes=())).outcome for check in all_checks("log")}
    assert outcomes == {"not_applicable"}


def test_a_log_that_says_nothing_gives_no_finding() -> None:
    empty = Snapshot(nodes=(), log=Log((LogFile("job.log", 0, 0),)))
    assert {run_check(check, empty).outcome for check in all_checks("log")} == {"passed"}


@pytest.mark.parametrize("check", all_checks("log"), ids=lambda check: str(check.slug))
def test_every_cause_has_a_manual_page(check: Check) -> None:
    assert [section for section in SECTIONS if section not in check.manual] == []
    assert check.code.startswith("NC9")


def test_a_cause_is_a_check_over_the_log() -> None:
    @cause("NC999", "a-cause", "A cause", fixes=(Fix("do this"),))
    def body(log: Log) -> Iterator[Suspect]:
        """What it is."""
        yield suspect("It is so.", [remark(log.files[0].name)], confidence="possible")

    declared: Check = body.__ncclcheck_check__  # type: ignore[attr-defined]
    run = run_check(declared, Snapshot(nodes=(), log=Log((LogFile("job.log", 0, 0),))))
    assert [(finding.severity, finding.slug) for finding in run.findings] == [("warning", "a-cause")]
    assert isinstance(Snapshot(nodes=()).log, Missing)


def declared_run(body: object, *lines: Remark) -> CheckRun:
    declared: Check = body.__ncclcheck_check__  # type: ignore[attr-defined]
    return run_check(declared, Snapshot(nodes=(), log=Log((LogFile("job.log", 9, 9),), events=lines)))


def test_a_cause_without_a_body_finds_the_lines_of_its_topics() -> None:
    @cause(
        "NC999",
        "a-cause",
        "A cause",
        topics=("oom",),
        unless="survived",
        beside=("limit",),
        summary="Memory is short.",
        explains=("rank-exception",),
        fixes=(Fix("buy memory"),),
    )
    def a_cause(log: Log) -> None:
        """What it is."""

    limit = replace(remark("limit 64", line=3), topic="limit")
    assert declared_run(a_cause, limit, remark("oom, survived")).findings == ()
    (found,) = declared_run(a_cause, limit, remark("oom", rank=3, line=2)).findings
    assert isinstance(found, Suspect)
    assert found.summary.startswith("Memory is short.")
    assert found.hosts == ("n1", "rank 3")
    assert [line.source for line in found.evidence] == ["job.log:2", "job.log:3"]
    assert found.explains == ("rank-exception",)
    assert [fix.text for fix in found.fixes] == ["buy memory"]


def test_a_suspect_may_have_its_own_fixes_and_explain_nothing() -> None:
    @cause("NC999", "a-cause", "A cause", explains=("rank-exception",), fixes=(Fix("do this"),))
    def a_cause(log: Log) -> Iterator[Suspect]:
        """What it is."""
        yield suspect("It is so.", log.events)
        yield suspect("Or so.", log.events, fixes=(Fix("do that"),), explains=())

    found = [
        suspect for suspect in declared_run(a_cause, remark("x")).findings if isinstance(suspect, Suspect)
    ]
    assert [suspect.explains for suspect in found] == [("rank-exception",), ()]
    assert [suspect.fixes[0].text for suspect in found] == ["do this", "do that"]


def test_evidence_is_file_and_line() -> None:
    line = seen(remark("text", rank=3, line=9))
    assert (line.source, line.subject, line.hosts) == ("job.log:9", "rank 3", ("n1",))


def test_evidence_is_a_handful_of_different_speakers() -> None:
    events = [remark("same words", rank=rank % 3, line=rank) for rank in range(100)]
    assert [event.place.rank for event in spread(events)] == [0, 1, 2]


_TIMED = "$ timeout 120 ./all_reduce_perf -g 2; echo rc=$?\nrc=124\n"
_WITHOUT_P2P = "$ NCCL_P2P_DISABLE=1 timeout 120 ./all_reduce_perf -g 2; echo rc=$?\n"


def test_a_command_that_ends_well_without_p2p_shows_that_p2p_is_broken() -> None:
    assert_cause(f"{_TIMED}{_WITHOUT_P2P}rc=0\n", "p2p-broken")


@pytest.mark.parametrize("text", [_TIMED, f"{_TIMED}{_WITHOUT_P2P}rc=124\n", f"{_TIMED}{_WITHOUT_P2P}"])
def test_a_command_that_its_time_limit_ended_is_undetermined(text: str) -> None:
    assert explain(text).outcome == "undetermined"


_MEMLOCK = "UCX  ERROR mlx5_0: ibv_create_cq() failed: Cannot allocate memory. Please set max locked memory\n"


def test_memlock_is_a_warning_where_results_follow() -> None:
    after = explain(f"{_MEMLOCK}# OSU MPI Broadcast Latency Test\n1    0.23\n2    0.24\n")
    assert {finding.severity for finding in after.findings} == {"warning"}
    assert_cause(_MEMLOCK, "memlock-limit")


_ENDED = "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2025-11-02T01:11:02 DUE TO NODE FAILURE ***\n"


def test_a_requeued_job_that_finished_is_healthy_and_one_that_did_not_is_not() -> None:
    requeued = f"{_ENDED}Job 7 requeued, restart count 1\n"
    assert explain(f"{requeued}Training completed successfully.\n").outcome == "healthy"
    assert explain(f"Training completed successfully.\n{requeued}").outcome != "healthy"
    assert explain(f"{requeued}step 3\n").outcome != "healthy"
    assert explain(f"{_ENDED}Training completed successfully.\n").outcome != "healthy"


def test_a_segment_of_another_rank_that_is_gone_is_no_lack_of_room_and_names_no_speaker() -> None:
    gone = (
        "g1:10:20 [0] NCCL INFO NCCL version 2.24.3+cuda12.4\n"
        "g1:10:20 [0] misc/shmutils.cc:93 NCCL WARN Call to open failed: No such file or directory\n"
        "g1:10:20 [0] misc/shmutils.cc:129 NCCL WARN Error while attaching to shared memory segment "
        "/dev/shm/nccl-a (size 14156128), error: No such file or directory (2)\n"
    )
    result = explain(gone)
    assert result.outcome == "undetermined"
    (beside,) = [finding for finding in result.findings if finding.slug == "shm-too-small"]
    assert (beside.severity, beside.hosts) == ("warning", ())
    assert "another /dev/shm" in beside.summary
    assert [fix for fix in beside.fixes if "--shm-size" in fix.text] == []
    full = gone.replace("open failed: No such file or directory", "fallocate failed: No space left on device")
    assert_cause(
        full.replace("No such file or directory (2)", "No space left on device (28)"), "shm-too-small"
    )
