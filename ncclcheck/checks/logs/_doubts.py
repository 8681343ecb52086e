"""What keeps a log from being called fine although nothing in it says that the job failed. Pure.

A log is fine where its job said that it finished, or was at work at its last line, and nobody who kept the log had a
question: no command that looks at the machine, no faster way that was asked for and not taken, no words after the
work that are like none before them.
"""

from __future__ import annotations

import re

from msgspec import Struct

from ncclcheck.checks.logs._job_rows import rows_of_failure
from ncclcheck.checks.logs._view import remarks
from ncclcheck.checks.logs._works import closes_the_job, ends_of_job, launched, successes
from ncclcheck.model.events import Event, Log, Remark

_UNDONE = re.compile(r"(?<![\d.])\d{1,2}%\|")  # tqdm's bar; a trainer's outer one reaches 100 % as well
_PROMPT_AT_END = re.compile(  # of a shell, on the line of the bar of a program that was killed
    r"\] ?(?:\([\w.-]{1,40}\) ?)?\[?[\w.-]{1,32}@[\w.-]{1,253}[^#$%\n]{0,120}[#$%]\s*$"
)


class Doubt(Struct, frozen=True):
    """Why a log is not called fine, and the lines that say so."""

    why: str
    lines: tuple[Event, ...]


def doubts(log: Log) -> Doubt | None:
    """Return the first reason not to call the log fine; None where there is none."""
    return next(
        (
            Doubt(why, lines)
            for why, lines in (
                ("a person looked at the machine, so there was a question", _looked_at(log)),
                ("the job was asked to use RDMA and used sockets", _slower_than_asked(log)),
                ("after the last line of work comes one that is like none before it", _unheard(log)),
                ("a program was started again, and how it ended is not here", _unfinished(log)),
                ("Kubernetes lists the job as failed", rows_of_failure(log)),
                ("the progress bar stands before its end, and the shell asks for a command", _left(log)),
            )
            if lines
        ),
        None,
    )


def _looked_at(log: Log) -> tuple[Event, ...]:
    """Return the looks at the machine, but for those before a program was started that then ended well."""
    looks = remarks(log, "inspected")
    starts = [start.place for start in launched(log)]
    ends = [end.place for end in ends_of_job(log) if closes_the_job(end)]
    return tuple(
        look
        for look in looks
        if not any(
            look.place.file == start.file == end.file and look.place.line < start.line < end.line
            for start in starts[-1:]  # what was started last has ended well
            for end in ends[-1:]
        )
    )


def _slower_than_asked(log: Log) -> tuple[Event, ...]:
    """Return the setting that asks for RDMA, where every process of the log used sockets."""
    networks = {process.network for process in log.processes if process.network}
    if any(process.devices for process in log.processes) or networks != {"Socket"}:
        return ()
    return remarks(log, "rdma-wanted")


def _unheard(log: Log) -> tuple[Event, ...]:
    """Return the last ordinary line, where only work speaks for the job and the line is new and comes after it."""
    if successes(log) or any(closes_the_job(end) for end in ends_of_job(log)):
        return ()
    parts: dict[str, int] = {}
    for end in ends_of_job(log):
        parts[end.place.file] = end.place.line
    return tuple(
        line
        for line in log.news
        if line.topic == "new-words"
        and (log.works.get(line.place.file) or line.place.file in parts)
        and line.place.line > max((*log.works.get(line.place.file, ()), parts.get(line.place.file, 0)))
    )


def _unfinished(log: Log) -> tuple[Event, ...]:
    """Return the last start of a program, where the job's last end stands before it and no work follows."""
    started = launched(log)[-1:]
    ends = ends_of_job(log) or successes(log)
    if not started or not ends:
        return ()
    place = started[0].place
    after = [
        end for end in (*ends, *successes(log)) if end.place.file != place.file or end.place.line > place.line
    ]
    works = log.works.get(place.file, ())
    return () if after or max(works, default=0) > place.line else tuple(started)


def _left(log: Log) -> tuple[Event, ...]:
    """Return the shell's prompts at the end of a file whose last words are an unfinished bar."""
    if remarks(log, "finished"):
        return ()
    last = {words.last.file: words for words in sorted(log.words, key=lambda words: words.last.line)}
    undone = {file: words for file, words in last.items() if _UNDONE.search(words.last_text)}
    return (
        *(line for line in log.news if line.topic == "at-prompt" and line.place.file in undone),
        *(
            Remark(place=words.last, text=words.last_text, topic="at-prompt")
            for words in undone.values()
            if _PROMPT_AT_END.search(words.last_text)
        ),
    )
