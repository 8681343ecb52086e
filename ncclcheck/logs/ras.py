"""What NCCL's RAS threads answer about a running job: missing ranks, and ranks that launched fewer collectives.

Source: NCCL src/ras/client_support.cc, v2.24.3 (one count for all collectives) to v2.30.7 (a count of each; JSON since
2.28.7), and docs/userguide/source/troubleshooting/ras.rst: counts that differ are normal while they grow, and a sign of
a hang where a second answer has the same ones.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

import msgspec
from msgspec import Struct

from ncclcheck.logs.readers.ras_lines import COUNTS, GROUP, HEADING, LOST, MISSING, RANK
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.events import (
    AnyEvent,
    Log,
    LogFile,
    LogPosition,
    RankBehind,
    RankDiffers,
    RankWaits,
    Remark,
)

MOST_RANKS_SHOWN = 32
OUTNUMBERED = 3  # so many ranks to one: then those that went on are the odd ones
LONGEST_TEXT = 200
# NCCL 2.28.7 and 2.28.9 write no comma after the `nvml_dev` of a missing rank (src/ras/client_support.cc,
# jsonWriteMissingRank; mended in 2.29.2).
_NO_COMMA = re.compile(rb'("nvml_dev": *\d+)(\s+"status")')
_IN_PROGRESS, _SUCCESS = 7, 0  # ncclResult_t

_VERSION = re.compile(r"^NCCL version (?P<version>\S{1,40})")
_ERRORS = re.compile(r"^\s+(?:Initialization|Asynchronous) errors? on \d{1,9} ranks?")


class RasRank(Struct, frozen=True):
    """A rank as RAS names it; host and process id where it does."""

    rank: int
    host: str = ""
    pid: int = 0
    dead: bool = False


class Tally(Struct, frozen=True):
    """So many ranks have launched `count` of an operation; those of `ranks` are named."""

    count: int
    number: int
    ranks: tuple[RasRank, ...] = ()


class Communicator(Struct, frozen=True):
    """One communicator. `tallies`: operation -> counts, the least first; of text only where they differ."""

    name: str
    size: int
    tallies: dict[str, tuple[Tally, ...]]
    missing: tuple[RasRank, ...] = ()
    errors: tuple[str, ...] = ()


class RasStatus(Struct, frozen=True):
    """One answer. `tells_all`: it has the counts of every communicator (JSON)."""

    version: str
    communicators: tuple[Communicator, ...]
    lost: tuple[str, ...] = ()
    tells_all: bool = False


class _State(Struct, frozen=True):
    init_state: int = 0
    async_error: int = 0
    unresponsive: bool = False
    considered_dead: bool = False


class _Rank(Struct):
    rank: int
    host: str = ""
    pid: int = 0
    status: _State = _State()
    collective_counts: dict[str, int] = {}


class _Communicator(Struct):
    hash: str = ""
    size: int = 0
    ranks: list[_Rank] = []
    missing_ranks: list[_Rank] = []


class _Document(Struct):
    communicators: list[_Communicator]
    nccl_version: str = ""


def read_status(answer: bytes) -> RasStatus:
    """Return the answer, in whichever of the two formats. Raises DecodeError where it is neither."""
    if answer.lstrip()[:1] == b"{":
        try:
            document = _document(answer)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise DecodeError(f"a damaged answer of NCCL RAS: {error}") from error
        return RasStatus(
            document.nccl_version[:LONGEST_TEXT],
            tuple(_communicator(communicator) for communicator in document.communicators),
            tells_all=True,
        )
    text = answer.decode("utf-8", "replace")
    if "Communicators..." not in text and "Job summary" not in text:
        raise DecodeError("the answer is none of NCCL RAS")
    return _of_text(text.split("\n"))


def _document(answer: bytes) -> _Document:
    try:
        return msgspec.json.decode(answer, type=_Document)
    except msgspec.DecodeError:
        repaired = _NO_COMMA.sub(rb"\1,\2", answer)
        if repaired == answer:
            raise
        return msgspec.json.decode(repaired, type=_Document)


def _communicator(described: _Communicator) -> Communicator:
    counts: dict[str, dict[int, list[RasRank]]] = {}
    errors: list[str] = []
    for rank in described.ranks:
        named = RasRank(rank.rank, rank.host[:LONGEST_TEXT], rank.pid)
        for operation, count in rank.collective_counts.items():
            counts.setdefault(operation[:LONGEST_TEXT], {}).setdefault(count, []).append(named)
        for what, value in (("initialisation", rank.status.init_state), ("async", rank.status.async_error)):
            if value not in (_SUCCESS, _IN_PROGRESS):
                errors.append(f"{_rank_text(named)} reports {what} error {value} (ncclResult_t)")
    return Communicator(
        name=described.hash[:LONGEST_TEXT],
        size=described.size,
        tallies={
            operation: tuple(
                Tally(count, len(ranks_of[count]), tuple(ranks_of[count])) for count in sorted(ranks_of)
            )
            for operation, ranks_of in counts.items()
        },
        missing=tuple(
            RasRank(rank.rank, rank.host[:LONGEST_TEXT], rank.pid, rank.status.considered_dead)
            for rank in described.missing_ranks
            if rank.status.unresponsive or rank.status.considered_dead
        ),
        errors=tuple(errors),
    )


class _Section:
    """What the text says of one communicator, as it is read line by line."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.counts: dict[str, dict[int, tuple[int, list[RasRank]]]] = {}
        self.missing: list[RasRank] = []
        self.errors: list[str] = []
        self.kind = self.operation = ""
        self.count: int | None = None

    def read(self, line: str) -> None:
        """One line below the communicator's heading is taken."""
        if match := COUNTS.search(line):
            kind = match["operation"]  # `collective` before 2.26, which had one count for all
            self.operation, self.count = "collectives" if kind == "collective" else kind, None
        elif match := GROUP.search(line):
            self.count = int(match["count"] or 0)
            self.counts.setdefault(self.operation, {})[self.count] = (int(match["number"]), [])
        elif match := MISSING.search(line):
            self.missing += [RasRank(int(number)) for number in re.findall(r"\d{1,9}", match["ranks"])]
        elif _ERRORS.match(line):
            self.errors.append(line.strip()[:LONGEST_TEXT])
        elif (match := RANK.search(line)) and match["rank"]:
            self._rank(match)

    def _rank(self, match: re.Match[str]) -> None:
        rank = RasRank(int(match["rank"]), match["host"] or "", int(match["pid"] or 0))
        if self.kind == "INCOMPLETE":
            self.missing.append(rank)
        elif match["count"] or match["none"]:
            self.counts.setdefault(self.operation, {})[int(match["count"] or 0)] = (1, [rank])
        elif self.operation and self.count is not None and not match["status"]:
            self.counts[self.operation][self.count][1].append(rank)

    def communicator(self) -> Communicator:
        """All of it."""
        tallies = {
            operation: tuple(
                Tally(count, ranks_of[count][0], tuple(ranks_of[count][1])) for count in sorted(ranks_of)
            )
            for operation, ranks_of in self.counts.items()
        }
        size = max((sum(tally.number for tally in tallied) for tallied in tallies.values()), default=0)
        return Communicator(self.name, size, tallies, tuple(self.missing), tuple(self.errors))


def _of_text(lines: Sequence[str]) -> RasStatus:
    version, lost = "", []
    sections: dict[str, _Section] = {}
    current: _Section | None = None
    for line in lines:
        if match := HEADING.match(line):
            current = sections.setdefault(match["hash"], _Section(match["hash"]))
            current.kind, current.operation, current.count = match["kind"], "", None
        elif match := _VERSION.match(line):
            version = match["version"]
        elif match := LOST.search(line):
            lost.append(line.strip()[:LONGEST_TEXT])
        elif line[:1].isalpha():
            current = None
        elif current is not None:
            current.read(line)
    return RasStatus(version, tuple(section.communicator() for section in sections.values()), tuple(lost))


def log_of(before: RasStatus, now: RasStatus, name: str, size_bytes: int) -> Log:
    """Return two answers of one server as a log: only what did not move between them is a hang."""
    return Log(files=(LogFile(name, size_bytes, 0),), events=tuple(_events(before, now, name)))


def has_advanced(before: RasStatus, now: RasStatus) -> bool:
    """Return whether ranks launched collectives between two answers that tell all counts (JSON)."""
    if not (before.tells_all and now.tells_all):
        return False
    earlier = {communicator.name: communicator.tallies for communicator in before.communicators}
    return any(
        communicator.name in earlier and earlier[communicator.name] != communicator.tallies
        for communicator in now.communicators
    )


def names_one_of(status: RasStatus, pids: Collection[int]) -> bool:
    """Return whether one of these processes is a rank of the job that answered."""
    return any(
        rank.pid in pids
        for communicator in status.communicators
        for tallies in communicator.tallies.values()
        for tally in tallies
        for rank in tally.ranks
    )


def _events(before: RasStatus, now: RasStatus, name: str) -> Iterator[AnyEvent]:
    earlier = {communicator.name: communicator for communicator in before.communicators}
    found = False
    moving = False
    for number, communicator in enumerate(now.communicators, 1):
        place = LogPosition(name, number)
        lost: list[AnyEvent] = [*_missing(communicator, place)]
        lost += [Remark(place, text, "ras-error") for text in communicator.errors]
        found = found or bool(lost)
        yield from lost
        known = earlier.get(communicator.name)
        if known is None or known.tallies != communicator.tallies:
            moving = True
            continue
        for event in _uneven(communicator, place):
            found = True
            yield event
    for text in now.lost if not found else ():
        found = True
        yield RankBehind(LogPosition(name, 0), f"{text} does not answer", "", 0, "", "no-answer")
    if found:
        return
    if moving:
        yield Remark(
            place=LogPosition(name, 0),
            text="counts of collectives grew between two answers of NCCL RAS",
            topic="harmless",
            values={"why": "the job makes progress", "shows": "work"},
        )
    else:
        text = (
            "NCCL RAS: no rank is missing or behind, and no count of collectives grew between two answers: the ranks "
            "compute, or all hang in the same collective"
        )
        if not now.tells_all:
            text += " (this NCCL tells only counts that differ)"
        yield RankWaits(LogPosition(name, 0), text, "", 0, "")


def _missing(communicator: Communicator, place: LogPosition) -> Iterator[RankBehind]:
    for rank in communicator.missing[:MOST_RANKS_SHOWN]:
        state = "is considered dead" if rank.dead else "does not answer NCCL RAS"
        yield RankBehind(
            place=_placed(place, rank),
            text=f"{_rank_text(rank)} of communicator {communicator.name} {state}: its process is gone, "
            "stopped or unreachable",
            group=communicator.name,
            sequence=0,
            operation="",
            how="dead" if rank.dead else "no-answer",
        )


def _uneven(communicator: Communicator, place: LogPosition) -> Iterator[AnyEvent]:
    """Yield the ranks that launched fewer of an operation than others; if these are nearly all, the few with more."""
    for operation, tallies in communicator.tallies.items():
        if len(tallies) < 2:  # noqa: PLR2004
            continue
        low, high = tallies[0], tallies[-1]
        more = sum(tally.number for tally in tallies[1:])
        words = f"{operation} in communicator {communicator.name}"
        if low.number >= OUTNUMBERED * more:
            for rank in high.ranks[:MOST_RANKS_SHOWN]:
                text = (
                    f"{_rank_text(rank)} launched {high.count} {words}, {low.number} ranks only {low.count}"
                )
                yield RankDiffers(_placed(place, rank), text, communicator.name, high.count, alone=True)
            continue
        text = f"launched {low.count} {words}, {more} others up to {high.count}, and none went on between two answers"
        for named in low.ranks[:MOST_RANKS_SHOWN] or (None,):
            yield RankBehind(
                place=place if named is None else _placed(place, named),
                text=f"{f'{low.number} ranks' if named is None else _rank_text(named)} {text}",
                group=communicator.name,
                sequence=high.count,
                operation=operation,
                how="not-entered",
                waiting=tuple(rank.rank for rank in high.ranks[:8]),
            )


def _placed(place: LogPosition, rank: RasRank) -> LogPosition:
    return LogPosition(place.file, place.line, rank.rank, rank.host or None)


def _rank_text(rank: RasRank) -> str:
    return f"rank {rank.rank}" + (f" (process {rank.pid} on {rank.host})" if rank.host else "")
