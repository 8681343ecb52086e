"""Find the ranks that are behind: flight recorder dumps matched by process group and sequence number.

What a rank entered is certain; what completed only where the recorder knows (Gloo's entries never do: their state stays
`scheduled`, and the group's status counts collectives that failed as completed, torch 2.13).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.logs.recorder.flight_recorder import Dump, Group, Recorded
from ncclcheck.model.events import AnyEvent, Log, LogPosition, RankBehind, RankDiffers, RankWaits

MOST_EVENTS_OF_A_GROUP = 32
MOST_RANKS_NAMED = 8
OUTNUMBERED = 3  # so many ranks to one: then the one that went on alone is the odd one
_TELLS_NO_END = "gloo"
_SIZES_MAY_DIFFER = frozenset({"GATHER", "SCATTER", "ALLTOALL", "SEND", "RECV"})

Key: TypeAlias = tuple[str, tuple[int, ...]]


class Seat(Struct, frozen=True):
    """One rank in one group."""

    rank: int
    dump: Dump
    group: Group

    def at(self, sequence: int) -> Recorded | None:
        """Return what the rank entered as that number of the group, if the dump still holds it."""
        return next(
            (collective for collective in self.group.collectives if collective.sequence == sequence), None
        )

    def waits_from(self, step: int) -> Recorded | None:
        """Return the first operation from `step` on that the rank was still in."""
        if self.group.backend == _TELLS_NO_END:
            return self.at(self.group.last) if self.group.last >= step else None
        return next(
            (
                collective
                for collective in self.group.collectives
                if collective.sequence >= step and not collective.is_over
            ),
            None,
        )

    def place(self, sequence: int) -> LogPosition:
        """Return the rank, in its dump."""
        return LogPosition(self.dump.file, sequence, self.rank, self.dump.host or None)


class _Lag(Struct, frozen=True):
    """A group in which `waiting` wait for `behind`; or, `alone`, for most, who did not go on as they did."""

    behind: tuple[RankBehind, ...]
    waiting: tuple[tuple[Seat, Recorded], ...]
    alone: tuple[RankDiffers, ...] = ()

    @property
    def waiters(self) -> set[int]:
        """The ranks that wait."""
        return {seat.rank for seat, _ in self.waiting}


def joined(log: Log, dumps: Sequence[Dump]) -> Log:
    """Return the log with what the dumps tell, each rank on the host that the log names for it."""
    if not dumps:
        return log
    hosts = {
        dump.rank: dump.host for dump in dumps if dump.rank is not None and dump.host
    } | log.hosts_of_ranks
    found = tuple(
        replace(event, place=replace(event.place, host=hosts.get(event.place.rank, event.place.host)))
        if event.place.rank is not None
        else event
        for event in desync(dumps)
    )
    return replace(log, events=log.events + found, hosts_of_ranks=hosts)


def desync(dumps: Sequence[Dump]) -> list[AnyEvent]:
    """Return what the dumps of one job tell together; nothing if all operations ended or agree."""
    groups = _groups(_one_of_each_rank(dumps))
    differing = [differs for seats in groups.values() for differs in _differing(seats)]
    lags = [lag for key, seats in groups.items() if (lag := _lag(key, seats)) is not None]
    found: list[AnyEvent] = [*differing]
    waited = Counter(rank for lag in lags if lag.behind for rank in lag.waiters)
    roots = [
        behind
        for lag in lags
        for behind in lag.behind
        if behind.place.rank is not None
        and waited[behind.place.rank]
        == (behind.how == "not-started")  # which it waits for itself, in this group
    ]
    if roots or not any(lag.behind for lag in lags):
        found += roots
    elif not differing:
        found += _crossed(lags)
    found += [differs for lag in lags for differs in lag.alone if not differing]
    for lag in lags:
        found += [_waits(seat, recorded) for seat, recorded in lag.waiting[:MOST_EVENTS_OF_A_GROUP]]
    return found


def _one_of_each_rank(dumps: Iterable[Dump]) -> list[Dump]:
    """Return the newest dump of each rank: a job may be dumped twice, and in two formats."""
    newest: dict[int, Dump] = {}
    for dump in dumps:
        if dump.rank is not None and (
            dump.rank not in newest or newest[dump.rank].newest_ns < dump.newest_ns
        ):
            newest[dump.rank] = dump
    return [newest[rank] for rank in sorted(newest)]


def _groups(dumps: Sequence[Dump]) -> dict[Key, list[Seat]]:
    """Return the ranks of each group. Groups of one name and different members are different groups."""
    memberships: dict[str, set[tuple[int, ...]]] = {}
    for dump in dumps:
        for group in dump.groups:
            if group.members is not None:
                memberships.setdefault(group.name, set()).add(group.members)
    found: dict[Key, list[Seat]] = {}
    for dump in dumps:
        for group in dump.groups:
            if dump.rank is None:
                continue
            members = group.members
            if members is None:
                fitting = [members for members in memberships.get(group.name, ()) if dump.rank in members]
                members = fitting[0] if len(fitting) == 1 else ()
            if members and dump.rank not in members and not group.collectives:
                continue  # a group of others, which this rank only knows
            found.setdefault((group.name, members), []).append(Seat(dump.rank, dump, group))
    return found


def _differing(seats: Sequence[Seat]) -> Iterator[RankDiffers]:
    """Yield the ranks that are in another collective than most, at the first step where they differ."""
    steps: dict[int, list[tuple[Seat, Recorded]]] = {}
    for seat in seats:
        for collective in seat.group.collectives:
            steps.setdefault(collective.sequence, []).append((seat, collective))
    for step in sorted(steps):
        entered = steps[step]
        kinds = Counter(_kind(recorded) for _, recorded in entered)
        if len(kinds) < 2 or all(recorded.is_over for _, recorded in entered):  # noqa: PLR2004
            continue
        common = kinds.most_common(1)[0][0]
        usual = [seat.rank for seat, recorded in entered if _kind(recorded) == common]
        words = next(described(recorded) for _, recorded in entered if _kind(recorded) == common)
        odd = [(seat, recorded) for seat, recorded in entered if _kind(recorded) != common]
        for seat, recorded in odd[:MOST_EVENTS_OF_A_GROUP]:
            text = (
                f"rank {seat.rank} is in {described(recorded)}{_called(recorded)}, {_named(usual)} in {words}: "
                f"sequence {step} of {_group_words(seat.group)}"
            )
            yield RankDiffers(place=seat.place(step), text=text, group=seat.group.name, sequence=step)
        return


def _kind(recorded: Recorded) -> tuple[object, ...]:
    """Return what must be the same on all ranks of a collective."""
    if recorded.operation in _SIZES_MAY_DIFFER or "COALESCED" in recorded.operation:
        return (recorded.operation,)
    return recorded.operation, recorded.elements_in, recorded.elements_out, recorded.dtypes


def _lag(key: Key, seats: Sequence[Seat]) -> _Lag | None:
    """Who is waited for in this group, and who waits; None where nobody waits."""
    low = min(seat.group.last for seat in seats)
    behind = [seat for seat in seats if seat.group.last == low]
    ahead = [seat for seat in seats if seat.group.last > low]
    if not ahead:
        return _level(key, seats)
    waiting = _waiting(ahead, low + 1)
    if not waiting:
        return None
    seat, first_awaited = waiting[0]
    shown = next((found for seat_ahead in ahead if (found := seat_ahead.at(low + 1))), first_awaited)
    if len(behind) >= OUTNUMBERED * len(ahead):
        return _Lag(
            (), waiting, tuple(_alone(waiting_seat, found, behind) for waiting_seat, found in waiting)
        )
    how = f"{_named([waiting_seat.rank for waiting_seat, _ in waiting])} in {described(shown)}, sequence {low + 1}"
    return _Lag(
        tuple(
            RankBehind(
                place=late.place(low + 1),
                text=f"rank {late.rank} entered {low or 'no'} collectives of {_group_words(seat.group)}"
                f"{_last_words(late)}; for the next one wait {how}{_called(shown)}",
                group=late.group.name,
                sequence=low + 1,
                operation=shown.operation,
                how="not-entered",
                waiting=tuple(waiting_seat.rank for waiting_seat, _ in waiting[:MOST_RANKS_NAMED]),
            )
            for late in behind[:MOST_EVENTS_OF_A_GROUP]
        ),
        waiting,
    )


def _alone(seat: Seat, recorded: Recorded, stayed: Sequence[Seat]) -> RankDiffers:
    text = (
        f"rank {seat.rank} went on into {described(recorded)}{_called(recorded)}, sequence {recorded.sequence} of "
        f"{_group_words(seat.group)}; {_named([stayed_seat.rank for stayed_seat in stayed])} did not follow"
    )
    return RankDiffers(
        place=seat.place(recorded.sequence),
        text=text,
        group=seat.group.name,
        sequence=recorded.sequence,
        alone=True,
    )


def _level(key: Key, seats: Sequence[Seat]) -> _Lag | None:
    """All ranks with a dump entered the same collectives: one may not have begun on its GPU, or have left no dump."""
    waiting = _waiting(seats, 0) if seats[0].group.backend != _TELLS_NO_END else ()
    if not waiting or len(waiting) < len(seats):
        return None
    step = min(recorded.sequence for _, recorded in waiting)
    not_begun = [
        (seat, recorded)
        for seat, recorded in waiting
        if recorded.state == "scheduled" and recorded.sequence == step
    ]
    begun = [
        (seat, recorded)
        for seat, recorded in waiting
        if recorded.state == "started" and recorded.sequence == step
    ]
    absent = [rank for rank in key[1] if rank not in {seat.rank for seat in seats}]
    seat, first = waiting[0]
    late: list[RankBehind] = []
    if begun and not_begun and len(not_begun) < len(begun):
        late = [
            _behind(
                idle.place(step),
                f"rank {idle.rank} entered {described(recorded)}{_called(recorded)} but its GPU has not begun it; "
                f"{_named([begun_seat.rank for begun_seat, _ in begun])} began: sequence {step} of "
                f"{_group_words(seat.group)}",
                seat.group.name,
                recorded,
                begun,
            )
            for idle, recorded in not_begun[:MOST_EVENTS_OF_A_GROUP]
        ]
    elif absent and len(absent) < len(seats):
        late = [
            RankBehind(
                place=LogPosition(seat.dump.file, step, rank),
                text=f"rank {rank} left no dump here; "
                f"{_named([waiting_seat.rank for waiting_seat, _ in waiting])} wait in "
                f"{described(first)}{_called(first)}, sequence {step} of {_group_words(seat.group)}",
                group=seat.group.name,
                sequence=step,
                operation=first.operation,
                how="no-dump",
                waiting=tuple(waiting_seat.rank for waiting_seat, _ in waiting[:MOST_RANKS_NAMED]),
            )
            for rank in absent[:MOST_EVENTS_OF_A_GROUP]
        ]
    return _Lag(tuple(late), waiting)


def _behind(
    place: LogPosition, text: str, group: str, recorded: Recorded, begun: Sequence[tuple[Seat, Recorded]]
) -> RankBehind:
    return RankBehind(
        place=place,
        text=text,
        group=group,
        sequence=recorded.sequence,
        operation=recorded.operation,
        how="not-started",
        waiting=tuple(seat.rank for seat, _ in begun[:MOST_RANKS_NAMED]),
    )


def _waiting(seats: Iterable[Seat], step: int) -> tuple[tuple[Seat, Recorded], ...]:
    return tuple((seat, awaited) for seat in seats if (awaited := seat.waits_from(step)) is not None)


def _crossed(lags: Sequence[_Lag]) -> Iterator[RankDiffers]:
    """Every rank that is waited for waits itself in another group: they use their groups in different orders."""
    where = {seat.rank: (seat, recorded) for lag in lags if lag.behind for seat, recorded in lag.waiting}
    late = {behind.place.rank for lag in lags for behind in lag.behind}
    for rank in sorted(rank for rank in late if rank in where)[:MOST_EVENTS_OF_A_GROUP]:
        seat, awaited = where[rank]
        text = (
            f"rank {rank} waits in {described(awaited)}{_called(awaited)}, sequence {awaited.sequence} of "
            f"{_group_words(seat.group)}, while another group waits for it"
        )
        yield RankDiffers(
            place=seat.place(awaited.sequence), text=text, group=seat.group.name, sequence=awaited.sequence
        )


def _waits(seat: Seat, recorded: Recorded) -> RankWaits:
    text = (
        f"rank {seat.rank} is in {described(recorded)}{_called(recorded)}: sequence {recorded.sequence} of "
        f"{_group_words(seat.group)}, {recorded.state}"
    )
    return RankWaits(
        place=seat.place(recorded.sequence),
        text=text,
        group=seat.group.name,
        sequence=recorded.sequence,
        operation=recorded.operation,
    )


def described(recorded: Recorded) -> str:
    """`ALLREDUCE of 8 elements (Float)`."""
    size = "" if recorded.elements_in is None else f" of {recorded.elements_in} elements"
    if recorded.elements_out is not None and recorded.elements_out != recorded.elements_in:
        size += f" to {recorded.elements_out}"
    return f"{recorded.operation}{size}" + (f" ({', '.join(recorded.dtypes)})" if recorded.dtypes else "")


def _called(recorded: Recorded) -> str:
    return f" at {recorded.where}" if recorded.where else ""


def _last_words(seat: Seat) -> str:
    last = seat.at(seat.group.last)
    return f", the last {described(last)}{_called(last)}" if last is not None else ""


def _group_words(group: Group) -> str:
    about = f" ({group.description})" if group.description not in ("", "undefined") else ""
    return f"group {group.name}{about}"


def _named(ranks: Sequence[int]) -> str:
    words = ", ".join(str(rank) for rank in ranks[:MOST_RANKS_NAMED])
    more = f" and {len(ranks) - MOST_RANKS_NAMED} more" if len(ranks) > MOST_RANKS_NAMED else ""
    return f"rank{'s' if len(ranks) > 1 else ''} {words}{more}"
