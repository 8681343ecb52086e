"""One order for the events of all files: by time stamps where there are any, else by events that files share.

Clocks of hosts disagree, by milliseconds or by a time zone. A communicator's start and end are nearly the same moment
on all of its ranks; from these landmarks the offset of each file's clock is estimated, and taken off. A file without
time stamps is laid along its landmarks line by line. Within a file the order of the lines is never changed, and the
order in which the files were named changes nothing.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import TypeAlias

from ncclcheck.model.events import AnyEvent, CommInit, LogFile

CLOCKS_AGREE_S = 1.0  # ranks do not reach a landmark at the same instant
LINE_S = 1e-3  # what a line takes in a file without time stamps: only its order matters
_DAY_S = 86_400.0
_MOST_LANDMARKS = 256  # of each file
_Landmark: TypeAlias = tuple[str, str, int]
_Timed: TypeAlias = list[tuple[float, AnyEvent]]


def in_order(files: Sequence[LogFile], events: Iterable[AnyEvent]) -> list[AnyEvent]:
    """Return the events of all files in the order in which they happened, as well as the logs tell it."""
    by_file: dict[str, list[AnyEvent]] = {}
    for event in events:
        by_file.setdefault(event.place.file, []).append(event)
    for of_file in by_file.values():
        of_file.sort(key=lambda event: event.place.line)
    names = sorted(by_file, key=natural)
    if len(names) < 2:  # noqa: PLR2004
        return [event for name in names for event in by_file[name]]
    lengths = {file.name: file.lines for file in files}
    day = _day([event for name in names for event in by_file[name]])
    clocks = {name: list(_own_clock(by_file[name], day)) for name in names}
    timed = {name for name in names if any(event.place.time_s is not None for event in by_file[name])}
    _align(clocks, timed, lengths)
    streams = [
        [(moment, number, index, event) for index, (moment, event) in enumerate(clocks[name])]
        for number, name in enumerate(names)
    ]
    return [event for *_, event in heapq.merge(*streams, key=lambda entry: entry[:2])]


def natural(name: str) -> tuple[tuple[int, str], ...]:
    """Orders rank2 before rank10."""
    parts: list[tuple[int, str]] = []
    digits = ""
    for letter in name + "\0":
        if letter.isascii() and letter.isdigit():
            digits += letter
            continue
        if digits:
            parts.append((int(digits[:18]), ""))
            digits = ""
        parts.append((-1, letter))
    return tuple(parts)


def _day(events: Iterable[AnyEvent]) -> float:
    """Return the first day that any line names, in seconds; 0 where none does."""
    dated = [time for event in events if (time := event.place.time_s) is not None and time >= _DAY_S]
    return min(dated) // _DAY_S * _DAY_S if dated else 0.0


def _own_clock(events: Sequence[AnyEvent], day: float) -> Iterator[tuple[float, AnyEvent]]:
    """Each event with its file's clock; a line without a time has that of the line before it."""
    times = [
        time if (time := event.place.time_s) is None or time >= _DAY_S else time + day for event in events
    ]
    now = next((time for time in times if time is not None), None)
    for event, time in zip(events, times, strict=True):
        now = now if time is None else time
        yield (event.place.line * LINE_S if now is None else now), event


def _align(clocks: Mapping[str, _Timed], timed: set[str], lengths: Mapping[str, int]) -> None:
    """Set all clocks to one: that of the files with time stamps, else that of the file with most lines."""
    landmarks = {name: _landmarks(clock) for name, clock in clocks.items()}
    seen: dict[_Landmark, list[float]] = {}
    for name, marks in landmarks.items():
        if name in timed or not timed:
            for landmark, moment in marks.items():
                seen.setdefault(landmark, []).append(moment)
    agreed = {landmark: median(moments) for landmark, moments in seen.items()}
    moments = [moment for name in timed for moment, _ in clocks[name]]
    for name, clock in clocks.items():
        shared = [
            agreed[landmark] - moment for landmark, moment in landmarks[name].items() if landmark in agreed
        ]
        if shared:
            offset = median(shared)
            if name not in timed or abs(offset) > CLOCKS_AGREE_S:
                clock[:] = [(moment + offset, event) for moment, event in clock]
        elif timed and name not in timed:
            start, end, lines = min(moments), max(moments), max(lengths.get(name, 0), 1)
            clock[:] = [(start + (end - start) * event.place.line / lines, event) for _, event in clock]
    for clock in clocks.values():
        _no_way_back(clock)


def _no_way_back(timed: _Timed) -> None:
    """Correct times that are later than the time of a following line in the same file."""
    latest = float("inf")
    for index in range(len(timed) - 1, -1, -1):
        moment, event = timed[index]
        latest = min(latest, moment)
        timed[index] = (latest, event)


def _landmarks(timed: _Timed) -> dict[_Landmark, float]:
    """When the file's communicators started and were complete: the n-th of each size, whatever their names are."""
    counts: dict[tuple[str, str, int, int], int] = {}
    found: dict[_Landmark, float] = {}
    for moment, event in timed:
        if isinstance(event, CommInit) and len(found) < _MOST_LANDMARKS:
            mine = (event.stage, event.comm_id, event.comm_ranks, event.comm_rank)
            counts[mine] = counts.get(mine, 0) + 1
            found.setdefault((event.stage, event.comm_id or str(event.comm_ranks), counts[mine]), moment)
    return found
