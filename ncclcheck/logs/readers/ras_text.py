"""The text that `ncclras` prints, pasted into a log: ranks that are missing, dead, or behind in an operation.

Source: NCCL src/ras/client_support.cc, v2.24.3 to v2.30.7. The largest group of ranks stands first, the odd ones are
named below it. One answer cannot tell whether counts still grow, and the text of each event says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ncclcheck.logs.patterns.literals import needles
from ncclcheck.logs.readers.numbers import whole
from ncclcheck.logs.readers.ras_lines import COUNTS, GROUP, HEADING, LOST, MISSING, RANK
from ncclcheck.model.events import LogPosition, RankBehind, RankDiffers

MOST_RANKS_NAMED = 32  # of one answer; more are the size of a node that is gone
_OTHER = re.compile(r"Communicator ranks have different status")
PATTERNS = tuple(pattern.pattern for pattern in (HEADING, COUNTS, _OTHER, GROUP, RANK, MISSING, LOST))
_may_match = re.compile(needles(PATTERNS)).search


class RasText:
    """The communicator whose lines are being read."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Forget the communicator: another file begins."""
        self._name = self._kind = self._operation = ""
        self._most: tuple[int, int] | None = None  # ranks of the largest group, and their count
        self._count: int | None = None
        self._named = 0
        self._first: list[tuple[LogPosition, int | None, str]] = []  # the named ranks of that largest group

    def read(
        self, text: str, rank: int | None, place: LogPosition
    ) -> Iterator[tuple[LogPosition, int | None, RankBehind | RankDiffers]]:
        """Yield where each rank is that the line names, its process id, and its state; `rank`: a label before."""
        if not _may_match(text.lower()):
            return
        if match := HEADING.search(text):
            self.forget()
            self._name, self._kind = match["hash"], match["kind"]
        elif match := COUNTS.search(text):
            self._operation, self._most, self._count, self._first = match["operation"], None, None, []
        elif _OTHER.search(text):
            self._operation = ""
        elif match := GROUP.search(text):
            self._count = whole(match["count"] or "0")
            yield from self._group(whole(match["number"]) or 0)
        elif self._name and self._named < MOST_RANKS_NAMED:
            for event in self._rank(text, rank, place):
                self._named += 1
                yield event

    def _group(self, number: int) -> Iterator[tuple[LogPosition, int | None, RankBehind | RankDiffers]]:
        """Take a group of that many ranks; of two groups of one size the one that launched fewer holds the other up."""
        count = self._count or 0
        if self._most is None:
            self._most = number, count
        elif self._most[0] == number and count > self._most[1]:
            behind, self._most = self._most[1], (number, count)
            for there, pid, who in self._first:
                yield there, pid, self._odd(there, who, behind)

    def _rank(
        self, text: str, rank: int | None, place: LogPosition
    ) -> Iterator[tuple[LogPosition, int | None, RankBehind | RankDiffers]]:
        if match := RANK.search(text):
            number = whole(match["rank"]) if match["rank"] else rank
            there = LogPosition(place.file, place.line, number, match["host"])
            pid, who = whole(match["pid"]), f"rank {number} (process {match['pid']} on {match['host']})"
            if self._kind in ("INCOMPLETE", "DEAD", "TIMEOUT"):
                yield there, pid, self._gone(there, who)
            elif self._operation and self._most is not None:
                alone = match["count"] or ("0" if match["none"] else None)
                count = whole(alone) if alone is not None else self._count
                if count is not None and count != self._most[1]:
                    yield there, pid, self._odd(there, who, count)
                elif len(self._first) < MOST_RANKS_NAMED:
                    self._first.append((there, pid, who))
        elif match := MISSING.search(text):
            for number in map(int, re.findall(r"\d{1,9}", match["ranks"])[:MOST_RANKS_NAMED]):
                there = LogPosition(place.file, place.line, number)
                yield there, None, self._gone(there, f"rank {number}")
        elif match := LOST.search(text):
            there = LogPosition(place.file, place.line, None, match["host"])
            yield there, None, self._gone(there, f"process {match['pid']} on {match['host']}")

    def _gone(self, there: LogPosition, who: str) -> RankBehind:
        text = (
            f"{who} of communicator {self._name} is {self._kind} for NCCL RAS: its process is gone, stopped or "
            "unreachable"
        )
        return RankBehind(there, text, self._name, 0, "", "dead" if self._kind == "DEAD" else "no-answer")

    def _odd(self, there: LogPosition, who: str, count: int) -> RankBehind | RankDiffers:
        """Return that the rank launched fewer of the operation than most, or more."""
        number, most = self._most or (0, 0)
        words = (
            f"{who} launched {count} {self._operation} in communicator {self._name}, {number} ranks {most} "
            "(a hang if a second answer has the same counts)"
        )
        if count > most:
            return RankDiffers(there, words, self._name, count, alone=True)
        return RankBehind(there, words, self._name, most, self._operation, "not-entered")
