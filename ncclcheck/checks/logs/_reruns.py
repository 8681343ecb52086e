"""Commands that a person ran one after the other in a shell: what differed where a later one ended well. Pure."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from msgspec import Struct

from ncclcheck.checks.logs._view import all_alarms, remarks
from ncclcheck.checks.logs._works import closes_the_job, launched, went_on_after
from ncclcheck.checks.subject_cache import once_per_subject
from ncclcheck.model.events import Event, Log, Remark

_SETTINGS = re.compile(r"^.{0,200}?[#$%>] |\b[A-Z][A-Z0-9_]{2,60}=\S{0,200} ")
E = TypeVar("E", bound=Event)


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
    return bisect_left(_starts(log), line)


def interrupts(log: Log) -> tuple[Remark, ...]:
    """Return the lines at which a person stopped a command (^C)."""
    return tuple(word for word in remarks(log, "trouble-word") if word.text.startswith("^C"))


def typed(start: Remark) -> str:
    """Return what was typed, without the shell's prompt and the settings before the program."""
    return _SETTINGS.sub("", start.text)


def mended_by_version(log: Log) -> tuple[Run, Run] | None:
    """Return a command that failed and a later one that ended well, if only the version of NCCL differs.

    Return None too if a setting of NCCL was tried between the two: that may be what helped.
    """
    runs = [run for run in _runs(log) if run.versions]
    for number, failed in enumerate(runs):
        for later in runs[number + 1 :]:
            if failed.wrong and not failed.ends and later.ends and not later.wrong:
                differs = failed.versions.isdisjoint(later.versions) and not _tried_between(
                    log, failed, later
                )
                return (failed, later) if differs else None
    return None


def helped(log: Log, name: str) -> tuple[Event, ...]:
    """Return what went wrong, and the setting of that name with which a later command ended well; else nothing."""
    for attempt in remarks(log, "workaround"):
        if not attempt.values["setting"].startswith((f"{name}=", f"{name} ")):
            continue
        number = run_of(log, attempt.place.line + 1)
        wrong = [event for event in all_alarms(log) if run_of(log, event.place.line) < number]
        ends = [end for end in remarks(log, "finished", "succeeded") if run_of(log, end.place.line) == number]
        worked = ends or went_on_after(log, attempt.place, after=2)
        if wrong and worked and not any(run_of(log, event.place.line) == number for event in all_alarms(log)):
            return (wrong[0], attempt)
    return ()


def _tried_between(log: Log, failed: Run, later: Run) -> bool:
    return any(
        failed.wrong[0].place.line < attempt.place.line < later.ends[-1].place.line
        for attempt in remarks(log, "workaround")
        if not attempt.values["setting"].startswith("LD_")  # which selects the version
    )


@once_per_subject
def _starts(log: Log) -> tuple[int, ...]:
    """Return the lines in which commands were started, in order; none of several files."""
    return tuple(sorted(start.place.line for start in launched(log))) if len(log.files) == 1 else ()


def _runs(log: Log) -> Iterator[Run]:
    banners, wrong = _by_run(log, remarks(log, "nccl-banner")), _by_run(log, all_alarms(log))
    ends = _by_run(
        log, [end for end in remarks(log, "finished") if closes_the_job(end) or end.text.startswith("done")]
    )
    for number in range(1, len(_starts(log)) + 1):
        yield Run(tuple(banners.get(number, ())), tuple(wrong.get(number, ())), tuple(ends.get(number, ())))


def _by_run(log: Log, events: Iterable[E]) -> Mapping[int, Sequence[E]]:
    found: dict[int, list[E]] = {}
    for event in events:
        found.setdefault(run_of(log, event.place.line), []).append(event)
    return found
