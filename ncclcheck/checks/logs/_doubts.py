"""What keeps a log from being called fine although nothing in it says that the job failed. Pure.

A log is fine where its job said that it finished, or was at work at its last line, and nobody who kept the log had a
question: no command that looks at the machine, no faster way that was asked for and not taken, no new words after
the work that do not sound like work. The last lines of a tracker are the program's, and new only if it never closes.
"""

from __future__ import annotations

import re

from msgspec import Struct

from ncclcheck.checks.logs._job_rows import pod_rows, pods_completed, pods_failed, rows_of_failure
from ncclcheck.checks.logs._network import only_sockets
from ncclcheck.checks.logs._reruns import interrupts, run_of, typed
from ncclcheck.checks.logs._view import remarks
from ncclcheck.checks.logs._works import (
    closes_the_job,
    destroyed,
    ends_of_job,
    is_of_a_part,
    launched,
    successes,
)
from ncclcheck.logs.lines.progress import is_of_tracker
from ncclcheck.logs.lines.prompts import AT_HOST, ENVIRONMENT, SIGNS
from ncclcheck.logs.patterns.work_words import is_foreign, sounds_like_work
from ncclcheck.model.events import CommInit, Event, Log, Remark

_UNDONE = re.compile(r"(?<![\d.])\d{1,2}%\|")  # tqdm's bar; a trainer's outer one reaches 100 % as well
_COUNTED = re.compile(
    r"\b(?:step|iter(?:ation)?|epoch)s?[ :=#\[(]{0,4}(?P<done>\d{1,9}) {0,2}(?:/|of) {0,2}(?P<all>\d{1,9})",
    re.IGNORECASE,
)
_NEAR_THE_END = 0.9  # programs count from 0 or from 1, and tell every tenth step
_PROMPT_AT_END = re.compile(  # of a shell, on the line of the bar of a program that was killed
    rf"\] ?{ENVIRONMENT}\[?{AT_HOST}{SIGNS}\s*$"
)

_OF_GPUS = re.compile(
    r"[#$>%] (?:watch .{0,20})?nvidia-smi"
    r"(?:\s*$| -L\b| --query-gpu=(?:index|name|memory\.\w+|utilization\.\w+|,){1,12} )|"
    r"[#$>%] (?:free|df|ls|du)\b"
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
                ("after the last line of work comes one that does not sound like work", _unread_lines(log)),
                (
                    "an earlier command hung at the start of NCCL until somebody stopped it",
                    _stopped_at_start(log),
                ),
                (
                    "an earlier command was stopped by hand, and another one ended well",
                    _stopped_for_another(log),
                ),
                ("a program was started last, and how it ended is not here", _unfinished(log)),
                ("Kubernetes lists the job as failed", rows_of_failure(log)),
                ("Kubernetes lists a pod of the job as failed", pods_failed(log)),
                ("the progress stands before its end, and the program is over", _left(log)),
            )
            if lines
        ),
        None,
    )


def _looked_at(log: Log) -> tuple[Event, ...]:
    """Return the looks at the machine that leave a question open.

    A look before the last program was started does not, where that ended well. Nor does one at free GPUs after the end.
    """
    starts = [start.place for start in launched(log)]
    ends = [end.place for end in ends_of_job(log) if closes_the_job(end)]
    ended = {end.file: end.line for end in reversed(ends)}
    looks = [
        look
        for look in remarks(log, "inspected")
        if not (_OF_GPUS.search(look.text) and ended.get(look.place.file, look.place.line) < look.place.line)
    ]
    return tuple(
        look
        for look in looks
        if not any(
            look.place.file == start.file == end.file and look.place.line < start.line < end.line
            for start in starts[-1:]  # what was started last has ended well
            for end in ends[-1:]
        )
    )


def _ended_well(log: Log) -> bool:
    """Return True if the job, or its launcher, says that it ended well."""
    return bool(successes(log)) or any(map(closes_the_job, ends_of_job(log)))


def _slower_than_asked(log: Log) -> tuple[Event, ...]:
    """Return the setting that asks for RDMA, where every process of the log used sockets."""
    if any(process.devices for process in log.processes) or not only_sockets(log):
        return ()
    return remarks(log, "rdma-wanted")


def _unread_lines(log: Log) -> tuple[Event, ...]:
    """Return the new lines after the last work that may tell of trouble, where only work speaks for the job."""
    if _ended_well(log):
        return ()
    last = {file: max(lines) for file, lines in log.works.items() if lines}
    for end in (*ends_of_job(log), *(pod_rows(log) if pods_completed(log) else ())):
        last[end.place.file] = max(end.place.line, last.get(end.place.file, 0))
    after = [
        line
        for line in (*log.news, *pod_rows(log))
        if line.place.line > last.get(line.place.file, line.place.line)
    ]
    # A bar that is no work is drawn again as it was, when the program ends for whatever reason.
    newest = {
        line.place.file: line for line in after if line.topic == "new-words" and not _UNDONE.search(line.text)
    }
    return tuple(
        line
        for line in after
        if (
            is_foreign(line.text)
            if line.topic == "new-words" and line is not newest.get(line.place.file)
            else _may_be_trouble(log, line, last[line.place.file])
        )
    )


def _may_be_trouble(log: Log, line: Remark, last: int) -> bool:
    """Return True for new words, those of a tracker that did not close its run, and a pod that is not at work."""
    if line.topic == "tracker-words":
        closed = (end.place for end in remarks(log, "tracker-closed"))
        return not any(end.file == line.place.file and end.line > last for end in closed)
    if line.topic == "new-words":
        return not sounds_like_work(line.text)
    return line.topic == "pod-row" and line.values["state"] != "Running"


def _stopped_at_start(log: Log) -> tuple[Event, ...]:
    """Return the line at which a person stopped a command (^C) whose communicators all began and none was complete."""
    begun: dict[int, CommInit] = {}
    for event in log.events:
        if isinstance(event, CommInit):
            number = run_of(log, event.place.line)
            if event.stage == "start":
                begun.setdefault(number, event)
            else:
                begun.pop(number, None)
    worked = {run_of(log, end.place.line) for end in remarks(log, "finished", "bandwidth-measured")}
    return tuple(
        key
        for key in interrupts(log)
        if (number := run_of(log, key.place.line)) in begun and number not in worked
    )


def _stopped_for_another(log: Log) -> tuple[Event, ...]:
    """Return the line at which a person stopped a command (^C) that had ended nothing, before another one."""
    starts = launched(log)
    ended = {
        run_of(log, end.place.line) for end in remarks(log, "finished", "bandwidth-measured", "succeeded")
    }
    return tuple(
        key
        for key in interrupts(log)
        if 0 < (number := run_of(log, key.place.line)) < len(starts)
        and number not in ended
        and typed(starts[number - 1]) != typed(starts[-1])
    )


def _unfinished(log: Log) -> tuple[Event, ...]:
    """Return the last start of a program, where all that the log has of work or ends stands before it."""
    started = launched(log)[-1:]
    if not started:
        return ()
    place = started[0].place
    after = [
        end
        for end in (*ends_of_job(log), *successes(log), *destroyed(log))
        if end.place.file != place.file or end.place.line > place.line
    ]
    works = log.works.get(place.file, ())
    return () if after or max(works, default=0) > place.line else tuple(started)


def _left(log: Log) -> tuple[Event, ...]:
    """Return the shell's prompts at the end of a file whose last words are an unfinished bar, and a tracker's end."""
    if not all(map(is_of_a_part, remarks(log, "finished"))):
        return ()
    spoken = [words for words in log.words if not is_of_tracker(words.last_text.encode())]
    last = {words.last.file: words for words in sorted(spoken, key=lambda words: words.last.line)}
    undone = {file: words for file, words in last.items() if _UNDONE.search(words.last_text)}
    return (
        *(line for line in log.news if line.topic == "at-prompt" and line.place.file in undone),
        *(
            Remark(place=words.last, text=words.last_text, topic="at-prompt")
            for words in undone.values()
            if _PROMPT_AT_END.search(words.last_text)
        ),
        *(
            line
            for line in remarks(log, "tracker-closed")
            if (words := last.get(line.place.file)) is not None
            and words.last.line < line.place.line
            and (line.place.file in undone or _is_far_from_its_end(words.last_text))
        ),
    )


def _is_far_from_its_end(text: str) -> bool:
    """Return True if a program counts its steps, and was not near the last one."""
    match = _COUNTED.search(text)
    return match is not None and int(match["done"]) < _NEAR_THE_END * int(match["all"])
