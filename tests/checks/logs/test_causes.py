"""The declaration of causes, and suspects with their evidence."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ncclcheck.checks.logs._causes import Suspect, cause, seen, spread, suspect
from ncclcheck.checks.registry import Check, all_checks, run_check
from ncclcheck.model.events import Log, LogFile, Place, Remark
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import Fix
from ncclcheck.model.snapshot import Snapshot

SECTIONS = ("## Why it matters", "## How to fix", "## Source")


def remark(text: str, rank: int | None = None, line: int = 1) -> Remark:
    return Remark(Place("job.log", line, rank, "n1"), text, "oom")


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
    @cause("NC999", "a-cause", "A cause")
    def body(log: Log) -> Iterator[Suspect]:
        """What it is."""
        yield suspect(
            "It is so.", [remark(log.files[0].name)], fixes=(Fix("do this"),), confidence="possible"
        )

    declared: Check = body.__ncclcheck_check__  # type: ignore[attr-defined]
    run = run_check(declared, Snapshot(nodes=(), log=Log((LogFile("job.log", 0, 0),))))
    assert [(finding.severity, finding.slug) for finding in run.findings] == [("warning", "a-cause")]
    assert isinstance(Snapshot(nodes=()).log, Missing)


def test_evidence_is_file_and_line() -> None:
    line = seen(remark("text", rank=3, line=9))
    assert (line.source, line.subject, line.hosts) == ("job.log:9", "rank 3", ("n1",))


def test_evidence_is_a_handful_of_different_speakers() -> None:
    events = [remark("same words", rank=rank % 3, line=rank) for rank in range(100)]
    assert [event.place.rank for event in spread(events)] == [0, 1, 2]
