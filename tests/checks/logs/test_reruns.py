"""Which command of a shell session wrote a line, and what was other where a later one ended well."""

from __future__ import annotations

from ncclcheck.checks.logs._reruns import mended_by_version, run_of
from ncclcheck.model.events import AnyEvent, Log, LogFile, LogPosition, Remark

FILES = (LogFile("a", 0, 90),)


def line(number: int, topic: str, text: str = "x", **values: str) -> Remark:
    return Remark(LogPosition("a", number), text, topic, values)


def session(first: str, second: str, end: Remark, files: tuple[LogFile, ...] = FILES) -> Log:
    events: tuple[AnyEvent, ...] = (
        line(1, "launched", "$ all_reduce_perf"),
        line(2, "nccl-banner", nccl=first),
        line(3, "failed", "Test failure common.cu:592"),
        line(10, "launched", "$ all_reduce_perf"),
        line(11, "launched", "# Collective test starting: all_reduce_perf"),
        line(12, "nccl-banner", nccl=second),
        end,
    )
    return Log(files, events=events)


WELL = line(13, "finished", "# Out of bounds values : 0 OK")


def test_a_line_belongs_to_the_command_above_it_and_in_several_files_to_one_job() -> None:
    log = session("2.26.2", "2.28.9", WELL)
    assert [run_of(log, number) for number in (1, 2, 9, 12)] == [0, 1, 1, 2]
    assert run_of(session("2.26.2", "2.28.9", WELL, (*FILES, LogFile("b", 0, 9))), 12) == 0


def test_a_later_command_mends_it_if_its_version_is_another_and_it_ended_well() -> None:
    found = mended_by_version(session("2.26.2", "2.28.9", WELL))
    assert found is not None
    assert [run.versions for run in found] == [{"2.26.2"}, {"2.28.9"}]
    assert mended_by_version(session("2.26.2", "2.26.2", WELL)) is None
    assert mended_by_version(session("2.26.2", "2.28.9", line(13, "failed", "Test failure"))) is None
    assert mended_by_version(session("2.26.2", "2.28.9", line(13, "harmless"))) is None
