"""Whom a cause points at, where its own lines do not say it."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.checks.logs._causes import suspect
from ncclcheck.checks.logs._culprits import attributed, ended_first, without_a_word
from ncclcheck.logs.collect import Collector
from ncclcheck.logs.lines.split import batches
from ncclcheck.model.events import Log, LogPosition, Remark

TABLE = (
    "Root Cause (first observed failure):\n[0]:\n  host      : n7\n  rank      : 3 (local_rank: 3)\n"
    "  exitcode  : 1 (pid: 9)\n"
)


def log_of(text: str) -> Log:
    collector = Collector()
    collector.read("a.log", batches([text.encode()]))
    return collector.log()


def said_by(rank: int | None, host: str | None) -> Remark:
    return Remark(LogPosition("a.log", 1, rank, host), "KeyError: 'x'", "crash")


def test_the_speaker_of_the_lines_is_named() -> None:
    found = suspect("It.", [said_by(5, "n5")], fixes=())
    assert attributed(log_of(TABLE), found) == ("n5", "rank 5")


def test_hosts_that_the_cause_names_stay() -> None:
    found = suspect("It.", [said_by(5, "n5")], fixes=(), hosts=("n9",))
    assert attributed(log_of(TABLE), found) == ("n9",)


def test_lines_of_nobody_point_at_the_rank_that_the_launcher_saw_fail_first() -> None:
    assert attributed(log_of(TABLE), suspect("It.", [said_by(None, None)], fixes=())) == ("n7", "rank 3")


def test_a_cause_between_nodes_names_both_ends() -> None:
    lines = [said_by(0, "n1"), said_by(4, "n2"), said_by(8, "n3")]
    assert attributed(log_of(""), replace(suspect("It.", lines), between_nodes=True)) == (
        "n1",
        "n2",
    )


def test_nobody_is_named_where_nothing_tells() -> None:
    assert attributed(log_of("x\n"), suspect("It.", [said_by(None, None)], fixes=())) == ()
    assert ended_first(log_of("x\n")) == []


def test_the_rank_that_only_waited_is_not_to_blame() -> None:
    waited = "[rank3]: RuntimeError: Connection closed by peer [10.0.0.2]:999\n"
    assert without_a_word(log_of(TABLE)) == ("n7", "rank 3")
    assert without_a_word(log_of(waited + TABLE)) == ()
