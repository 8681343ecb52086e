"""NC939 collective-mismatch."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from ncclcheck.checks.logs._causes import Suspect, cause, suspect
from ncclcheck.checks.logs._view import culprits, differing, exceptions, remarks, statuses, timeouts
from ncclcheck.checks.logs.nccl_version_mismatch import past_the_start
from ncclcheck.logs.messages.ib_status import status_of
from ncclcheck.model.events import CollectiveTimeout, GroupStatus, Log, Remark
from ncclcheck.model.finding import Fix

_GUESSES = re.compile(r"\bmay be a mismatch\b")  # NCCL itself names several causes
_CULPRIT = re.compile(r"Culprit rank (\d{1,6});")
_MOST_CULPRITS = 8
_ENOUGH = 2  # ranks of one collective: any rank differs from one of them
_RUNNING = re.compile(
    r"Rank (?P<rank>\d{1,6}) is running collective: .{0,200}?"
    r"OpType=(?P<operation>\w+(?:, TensorShape=\[[\d, ]{0,80}\])?)"
)
_SIZES_MAY_DIFFER = frozenset(
    {"GATHER", "SCATTER", "ALLTOALL", "ALLTOALL_BASE", "SEND", "RECV", "COALESCED", "UNKNOWN"}
)


_TIMED_OUT = re.compile(r"[Tt]imed out waiting \d{1,12} ?ms|[Tt]imeout\b.{0,40}\bwork\b")
_COLLECTIVE_CALL = re.compile(
    r"\bin (barrier|broadcast|all_reduce|all_gather|all_gather_object|all_gather_into_tensor|broadcast_object_list|"
    r"gather|gather_object|scatter|reduce|reduce_scatter|reduce_scatter_tensor|all_to_all|all_to_all_single|"
    r"_engine_run_backward)$"
)
_READY = re.compile(r"\[ready ranks: ?(?P<ranks>\d{1,6}(?:, ?\d{1,6}){0,255})\]")
_CALLED = {"_engine_run_backward": "the backward pass"}  # whose hooks reduce the gradients
_MOST_RANKS_MORE = 3  # besides the one that waits
_AHEAD = 2  # a rank may have its part of one collective done before the others do; not of the next


@cause(
    "NC939",
    "collective-mismatch",
    "The ranks called different collectives",
    explains=("slow-rank-timeout", "rank-exception", "p2p-broken"),
    fixes=(
        Fix(
            "call the same collective with the same shape on all ranks: look for collectives inside `if rank "
            "== 0`, for early returns, and for shapes that depend on the rank (pad, or gather sizes first); "
            "unset NCCL_ALGO",
            ("TORCH_DISTRIBUTED_DEBUG=DETAIL ...   # names both collectives",),
        ),
    ),
)
def collective_mismatch(log: Log) -> Iterator[Suspect]:
    """The ranks call different collectives, or the same one with different sizes, or not all of them call it.

    ## Why it matters
    A collective ends only when all ranks of its group are in it; a collective in a branch of one rank shifts
    the order for good.

    ## How to fix
    Call every collective on all ranks of the group, in the same order, with the same shapes.

    ## Source
    torch ProcessGroupWrapper (TORCH_DISTRIBUTED_DEBUG=DETAIL), WorkNCCL sequence numbers; NCCL net_socket
    (`message truncated`); torch's flight recorder dumps, matched by group and sequence number.
    """
    odd = differing(log)
    if odd:
        yield suspect(
            f"{odd[0].text[:1].upper()}{odd[0].text[1:]}.",
            odd,
            confidence="likely" if all(differs.alone for differs in odd) else "certain",
            hosts=culprits(log, [differs.place for differs in odd]),
        )
        return
    mismatches = remarks(log, "collective-mismatch")
    sizes = remarks(log, "collective-size")
    if mismatches:
        yield suspect(
            "The ranks call different collectives at the same time.",
            mismatches,
            hosts=_named_minority(mismatches),
        )
    elif sizes:
        yield suspect(
            "A rank received more data than it expected: the ranks called a collective with different sizes.",
            sizes,
            confidence="likely" if all(_GUESSES.search(line.text) for line in sizes) else "certain",
            explains=("slow-rank-timeout", "rank-exception", "p2p-broken"),
        )
    yield from _connected_in_another_order(log)
    yield from _rejected_by_adapter(log)
    yield from _waiting_in_different_calls(log)
    yield from _stalled_in_different_calls(log)
    yield from _differing_at_one_step(log)
    yield from _out_of_step(log)
    yield from _ran_ahead(log)
    yield from _alone_in_it(log)


def _connected_in_another_order(log: Log) -> Iterator[Suspect]:
    """Bootstrap messages of another size in a communicator that was complete: its ranks connect other pairs."""
    truncated = [remark for remark in remarks(log, "bootstrap-truncated") if "peer" not in remark.text]
    complete = past_the_start(log, truncated) if truncated else ()
    if complete:
        yield suspect(
            "A rank got a bootstrap message of another size than it expected, after the communicator was complete: the "
            "ranks of a pair call send and receive in different orders, or at once from several threads.",
            [*complete[-1:], *truncated],
            confidence="likely",
            at=complete[-1].place,
            hosts=culprits(log, [truncated[0].place]),
            explains=("slow-rank-timeout", "rank-exception", "nccl-version-mismatch"),
        )


def _rejected_by_adapter(log: Log) -> Iterator[Suspect]:
    """Messages that were longer than the buffer that waited for them, as the RDMA adapter reports."""
    found = [
        remark
        for remark in remarks(log, "ib-completion")
        if (status := status_of(remark.values.get("status", ""))) and status.cause == "collective-mismatch"
    ]
    if found:
        number = found[0].values["status"]
        status = status_of(number)
        yield suspect(
            f"An RDMA request failed with status {number}: {status.means if status else ''}.",
            found,
            confidence="likely" if number == "1" else "possible",
        )


def _waiting_in_different_calls(log: Log) -> Iterator[Suspect]:
    """Ranks that timed out in different collectives, as the last frames of their tracebacks tell."""
    waited = {
        event.place.rank: (function[1], event)
        for event in exceptions(log, "after-effect")
        if event.place.rank is not None
        and _TIMED_OUT.search(event.message)
        and (function := _COLLECTIVE_CALL.search(event.where))
    }
    calls = Counter(call for call, _ in waited.values())
    if len(calls) > 1:
        named = {call: rank for rank, (call, _) in reversed(waited.items())}
        found = suspect(
            "The ranks waited for each other in different collectives: "
            + ", ".join(f"rank {rank} in {_CALLED.get(call, call)}" for call, rank in named.items())
            + ".",
            [event for _, event in waited.values()],
            confidence="likely",
        )
        yield replace(found, blames_nobody=True)


def _stalled_in_different_calls(log: Log) -> Iterator[Suspect]:
    """Ranks that Horovod has seen in different collectives, none of them in both: each waits for the others."""
    for stall in remarks(log, "stalled-ranks"):
        ready = [
            frozenset(match["ranks"].replace(" ", "").split(",")) for match in _READY.finditer(stall.text)
        ]
        groups = list(dict.fromkeys(ready))
        if len(groups) > 1 and sum(map(len, groups)) == len(frozenset[str]().union(*groups)):
            fewest = min(groups, key=len)
            alone = fewest if 2 * len(fewest) < max(map(len, groups)) else frozenset()
            yield suspect(
                "The ranks wait for each other in different collectives, as Horovod's list of stalled ones tells.",
                [stall],
                confidence="likely",
                hosts=tuple(f"rank {rank}" for rank in sorted(alone)),
            )
            return


def _differing_at_one_step(log: Log) -> Iterator[Suspect]:
    """The first step at which the ranks that timed out were in different collectives."""
    for at_step in _at_one_step(timeouts(log)).values():
        kinds: dict[tuple[str, int | None], list[CollectiveTimeout]] = {}
        for timeout in at_step:
            same_size = timeout.operation not in _SIZES_MAY_DIFFER or _is_gather(at_step)
            kinds.setdefault((timeout.operation, timeout.elements_in if same_size else None), []).append(
                timeout
            )
        if len(kinds) > 1:
            sizes = sorted(kinds.values(), key=_ranks_in)
            is_even = _ranks_in(sizes[0]) == _ranks_in(sizes[1])
            words = " and ".join(
                sorted(
                    {f"{operation} of {size} elements" if size else operation for operation, size in kinds}
                )
            )
            found = suspect(
                f"At the same step (SeqNum {at_step[0].sequence}) the ranks are in different collectives: {words}.",
                [timeout for group in sorted(kinds.values(), key=len) for timeout in group[:2]],
                confidence="likely" if _some_left(log) or _is_gather(at_step) else "certain",
                hosts=() if is_even else culprits(log, [timeout.place for timeout in sizes[0]]),
                at=at_step[0].place,
            )
            yield replace(found, blames_nobody=is_even)
            return


def _is_gather(at_step: Sequence[CollectiveTimeout]) -> bool:
    """Return True if all ranks are in coalesced operations that give each the parts of all, which have one size."""
    ratios = {
        (timeout.elements_out or 0) / timeout.elements_in if timeout.elements_in else 0 for timeout in at_step
    }
    return (
        {timeout.operation for timeout in at_step} == {"COALESCED"} and len(ratios) == 1 and min(ratios) > 1
    )


def _ranks_in(group: Sequence[CollectiveTimeout]) -> int:
    return len({timeout.place.rank for timeout in group})


def _two_of_each_step(late: Sequence[CollectiveTimeout]) -> Mapping[str, Sequence[CollectiveTimeout]]:
    """Return, for each group, the first timeouts of NCCL of two ranks in each collective: the others say the same."""
    found: dict[str, list[CollectiveTimeout]] = {}
    ranks_at: dict[tuple[str, int], set[int]] = {}
    for timeout in late:
        if timeout.layer == "nccl" and None not in (timeout.sequence, timeout.place.rank):
            ranks = ranks_at.setdefault((timeout.group, timeout.sequence or 0), set())
            if len(ranks) < _ENOUGH and timeout.place.rank not in ranks:
                ranks.add(timeout.place.rank or 0)
                found.setdefault(timeout.group, []).append(timeout)
    return found


def _out_of_step(log: Log) -> Iterator[Suspect]:
    """A rank that waits in a collective that it entered, and that another rank of the group has behind itself."""
    waiting = _two_of_each_step(timeouts(log))
    for state in statuses(log):
        for late in () if state.place.rank is None else waiting.get(state.group, ()):
            if (
                late.sequence is not None
                and late.place.rank != state.place.rank
                and state.completed + 1 < late.sequence <= state.enqueued
            ):
                yield suspect(
                    f"Rank {state.place.rank} waits in collective {state.completed + 1} of its group, which it entered "
                    f"and rank {late.place.rank} has behind itself: the ranks call different numbers of collectives.",
                    [state, late],
                    confidence="likely",
                    hosts=culprits(log, [state.place]),
                    explains=("slow-rank-timeout", "rank-exception"),
                )
                return


def _ran_ahead(log: Log) -> Iterator[Suspect]:
    """A rank that has two collectives behind itself which another one of its group entered and did not end."""
    last = {(state.group, state.place.rank): state for state in statuses(log) if state.place.rank is not None}
    first_of: dict[str, GroupStatus] = {}
    waiting: dict[str, GroupStatus] = {}
    for (group, _), state in last.items():
        first_of[group] = max(first_of.get(group, state), state, key=lambda status: status.completed)
        if state.enqueued > state.completed:
            waiting[group] = min(waiting.get(group, state), state, key=lambda status: status.completed)
    for group, waits in waiting.items():
        ahead = first_of[group]
        if ahead.completed >= waits.completed + _AHEAD:
            yield suspect(
                f"Rank {ahead.place.rank} has collective {ahead.completed} of its group behind itself, and rank "
                f"{waits.place.rank} still waits in {waits.completed + 1}: the ranks call different collectives.",
                [waits, ahead],
                confidence="likely",
                hosts=culprits(log, [ahead.place]) if _is_alone(ahead, last.values()) else (),
                explains=("slow-rank-timeout", "rank-exception"),
            )
            return


def _is_alone(ahead: GroupStatus, states: Iterable[GroupStatus]) -> bool:
    """Return True if two or more of its group are behind it, and none has come as far."""
    others = [state for state in states if state.group == ahead.group and state is not ahead]
    return len(others) > 1 and all(state.completed < ahead.completed for state in others)


def _alone_in_it(log: Log) -> Iterator[Suspect]:
    """The only rank that waited, where the log holds words of all others, which neither waited nor failed."""
    late = timeouts(log)
    waited = {timeout.place.rank for timeout in late}
    heard = {word.last.rank for word in log.words} | {
        remark.place.rank for remark in remarks(log, "finished")
    }
    heard -= {None, *waited}
    if len(waited) == 1 and None not in waited and len(heard) >= _MOST_RANKS_MORE and not exceptions(log):
        yield suspect(
            f"Rank {late[0].place.rank} alone waits in a collective, and no other rank that the log has words of: it "
            "calls one that they do not.",
            late,
            confidence="likely",
            hosts=culprits(log, [late[0].place]),
            explains=(),
        )


def _some_left(log: Log) -> bool:
    """Return True if a rank says that it had finished: it went on to the next collective without the others."""
    return any(remark.place.rank is not None for remark in remarks(log, "finished"))


def _at_one_step(late: tuple[CollectiveTimeout, ...]) -> dict[tuple[str, int], list[CollectiveTimeout]]:
    """The timeouts of each group and sequence number that more than one rank reported, one of each rank."""
    found: dict[tuple[str, int], dict[int | None, CollectiveTimeout]] = {}
    for timeout in late:
        if timeout.sequence is not None and timeout.place.rank is not None:
            found.setdefault((timeout.group, timeout.sequence), {}).setdefault(timeout.place.rank, timeout)
    return {step: list(by_rank.values()) for step, by_rank in found.items() if len(by_rank) > 1}


def _named_minority(mismatches: Sequence[Remark]) -> tuple[str, ...]:
    """The ranks that torch's analyzer blames, else those in the rarer collective, else the two that it compares."""
    blamed = {int(rank) for remark in mismatches for rank in _CULPRIT.findall(remark.text)}
    if blamed:
        return tuple(f"rank {rank}" for rank in sorted(blamed)[:_MOST_CULPRITS])
    operations = {
        int(match["rank"]): match["operation"]
        for remark in mismatches
        for match in _RUNNING.finditer(remark.text)
    }
    counts = sorted(Counter(operations.values()).items(), key=lambda pair: pair[1])
    if len(operations) == 2:  # noqa: PLR2004
        return tuple(f"rank {rank}" for rank in sorted(operations))
    if len(counts) < 2 or counts[0][1] == counts[1][1]:  # noqa: PLR2004
        return ()
    return tuple(f"rank {rank}" for rank, name in sorted(operations.items()) if name == counts[0][0])
