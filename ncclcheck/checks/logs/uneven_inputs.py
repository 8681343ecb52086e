"""NC940 uneven-inputs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from ncclcheck.checks.logs._causes import Suspect, cause, suspect
from ncclcheck.checks.logs._reached import not_passed
from ncclcheck.checks.logs._view import culprits, exceptions, remarks, timeouts, troubles
from ncclcheck.model.events import Log, Remark
from ncclcheck.model.finding import Fix

_TRAINED = re.compile(r"\b(?:training|train|fit)\b.{0,20}\b(?:finished|done|complete|over)", re.IGNORECASE)
_OF_RANKS = re.compile(r"\((\d{1,6})/\d{1,6}\)")  # of icefall: rank and number of ranks
_FEW = 3
_RANK = re.compile(r"\b[Rr]ank[ :=#]{1,2}(\d{1,6})\b")
_LEFT = re.compile(
    r"epoch \d+ (?:is )?(?:done|complete|finished)|(?:finished|done|complete)[^.]{0,40}(?:exit|waiting|leav)",
    re.IGNORECASE,
)


@cause(
    "NC940",
    "uneven-inputs",
    "The ranks have different numbers of batches",
    explains=("slow-rank-timeout", "rank-exception", "collective-mismatch", "idle-connection-dropped"),
    judges=True,
    fixes=(
        Fix(
            "give every rank the same number of batches: drop_last=True, DistributedSampler, even shards; or "
            "wrap the loop in the Join context",
            ("print(rank, len(loader))   # on every rank",),
        ),
    ),
)
def uneven_inputs(log: Log) -> Iterator[Suspect]:
    """The ranks have different numbers of batches: some finish while others still wait for them in a collective.

    ## Why it matters
    The ranks with fewer batches leave or continue with the next collective; the others hang in the gradient reduction
    of one more step.

    ## How to fix
    Make the numbers equal (drop_last, a distributed sampler), or use Join.

    ## Source
    torch DistributedSampler and torch.distributed.algorithms.join.
    """
    lengths: dict[int, tuple[int, Remark]] = {}
    for remark in remarks(log, "uneven"):
        value = next(
            (
                remark.values[name]
                for name in ("length", "batches", "steps", "ended")
                if name in remark.values
            ),
            "",
        )
        if remark.place.rank is not None and value.isdigit():
            lengths.setdefault(remark.place.rank, (int(value), remark))
    left = [
        remark
        for remark in remarks(log, "finished")
        if remark.place.rank is not None and _LEFT.search(remark.text)
    ]
    if noticed := _noticed(log):
        yield noticed
        return
    exhausted = remarks(log, "inputs-exhausted")
    if exhausted and troubles(log):
        yield _exhausted(exhausted)
        return
    if early := _ended_before_others(log):
        yield early
        return
    if len({length for length, _ in lengths.values()}) > 1 and troubles(log):
        fewest = min(length for length, _ in lengths.values())
        most = max(length for length, _ in lengths.values())
        odd = _odd(length for length, _ in lengths.values())
        odd_lines = [line for length, line in lengths.values() if length == odd]
        yield suspect(
            f"The ranks have different numbers of batches ({fewest} to {most}).",
            [*odd_lines, *(line for _, line in lengths.values())],
            confidence="certain",
            at=troubles(log)[0].place,
            hosts=culprits(log, [remark.place for remark in odd_lines]),
        )
    elif left and _others_wait(log, left) and not exceptions(log) and not _all_trained(log, left):
        yield suspect(
            "Some ranks finished while others still waited for them: they had fewer batches.",
            left,
            confidence="likely",
            at=troubles(log)[0].place,
            hosts=culprits(log, [remark.place for remark in left]),
        )


def _exhausted(ends: Sequence[Remark]) -> Suspect:
    """Return that the program itself says that a rank has no more batches; it may name the rank in its words."""
    ranks = {remark.place.rank for remark in ends if remark.place.rank is not None}
    ranks |= {int(match[1]) for remark in ends if (match := _RANK.search(remark.text))}
    return suspect(
        "One rank has no more batches while others still have some, as the program itself says.",
        ends,
        hosts=(f"rank {ranks.pop()}",) if len(ranks) == 1 else (),
    )


def _odd(lengths: Iterable[int]) -> int:
    """The length that the fewest ranks have; the shortest of equally rare ones."""
    counts = Counter(lengths)
    return min(counts, key=lambda length: (counts[length], length))


def _others_wait(log: Log, left: list[Remark]) -> bool:
    """True if a rank that did not leave failed."""
    ranks = {remark.place.rank for remark in left}
    return any(alarm.place.rank is not None and alarm.place.rank not in ranks for alarm in troubles(log))


def _ended_before_others(log: Log) -> Suspect | None:
    """Return that some ranks reached the end of their data, and ranks that never say so waited for them in vain."""
    ends = remarks(log, "data-ended")
    by_rank: dict[int, Remark] = {}
    for remark in ends:
        match = _OF_RANKS.search(remark.text)
        rank = int(match[1]) if match else remark.place.rank
        if rank is not None:
            by_rank.setdefault(rank, remark)
    waited = {timeout.place.rank for timeout in timeouts(log)} - {None}
    if not by_rank or not waited - set(by_rank):
        return None
    return suspect(
        "Some ranks came to the end of their data, while others still had some and waited for them.",
        [*by_rank.values(), *timeouts(log)[:2]],
        at=timeouts(log)[0].place,
        hosts=tuple(f"rank {rank}" for rank in sorted(by_rank)) if len(by_rank) <= _FEW else (),
    )


def _all_trained(log: Log, left: Sequence[Remark]) -> bool:
    """Return True if ranks that did not leave say that their training was over: they wait for another reason."""
    ranks = {remark.place.rank for remark in left}
    return any(
        end.place.rank is not None and end.place.rank not in ranks and _TRAINED.search(end.text)
        for end in remarks(log, "finished")
    )


def _noticed(log: Log) -> Suspect | None:
    """Return that the program itself found who had no more batches, by a monitored barrier."""
    notices = [remark for remark in remarks(log, "message") if remark.values.get("group") == "wenet-uneven"]
    named = tuple(f"rank {rank}" for rank in not_passed(log)) if notices else ()
    if not named:
        return None
    return suspect(
        f"{', '.join(named)} had no more batches while the others still waited, as the program itself found.",
        [*remarks(log, "monitored-barrier"), *notices],
        confidence="likely",
        hosts=named,
    )
