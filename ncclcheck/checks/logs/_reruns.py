"""Commands that a person ran one after the other in a shell: what differed where a later one ended well. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from ncclcheck.checks.logs._view import all_alarms, remarks
from ncclcheck.checks.logs._works import closes_the_job, ends_of_job, launched
from ncclcheck.model.events import Event, Log, Remark


class Run(Struct, frozen=True):
    """One command: the lines of its NCCL version, of what went wrong in it, and of its end."""

    banners: tuple[Remark, ...]
    wrong: tuple[Event, ...]
    ends: tuple[Remark, ...]

    @property
    def versions(self) -> frozenset[str]:
        """The NCCL versions that it printed."""
        return frozenset(banner.values["nccl"] for banner in self.banners if banner.values.get("nccl"))


def run_of(log: Log, line: int) -> int:
    """Return the number of the command that wrote the line; 0 for several files, which may be of one job."""
    return sum(start < line for start in _starts(log))


def mended_by_version(log: Log) -> tuple[Run, Run] | None:
    """Return a command that failed and a later one that ended well, if only the version of NCCL differs.

    Return None too if a setting of NCCL was tried between the two: that may be what helped.
    """
    runs = [run for run in _runs(log) if len(run.versions) == 1]
    for number, failed in enumerate(runs):
        for later in runs[number + 1 :]:
            if failed.wrong and not failed.ends and later.ends and not later.wrong:
                differs = failed.versions != later.versions and not _tried_between(log, failed, later)
                return (failed, later) if differs else None
    return None


def _tried_between(log: Log, failed: Run, later: Run) -> bool:
    return any(
        failed.wrong[0].place.line < attempt.place.line < later.ends[-1].place.line
        for attempt in remarks(log, "workaround")
    )


def _starts(log: Log) -> list[int]:
    if len(log.files) != 1:
        return []
    return [start.place.line for start in launched(log)]


def _runs(log: Log) -> Iterator[Run]:
    for number in range(1, len(_starts(log)) + 1):
        yield Run(
            tuple(line for line in remarks(log, "nccl-banner") if run_of(log, line.place.line) == number),
            tuple(line for line in all_alarms(log) if run_of(log, line.place.line) == number),
            tuple(
                end
                for end in ends_of_job(log)
                if closes_the_job(end) and run_of(log, end.place.line) == number
            ),
        )
