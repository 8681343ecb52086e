"""NC941 slow-rank-timeout."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ncclcheck.checks.logs._causes import Suspect, cause, suspect
from ncclcheck.checks.logs._reached import not_passed, reached_by_group
from ncclcheck.checks.logs._view import behind, culprits, remarks, timeouts, waits, world_size
from ncclcheck.logs.lines.prompts import AT_HOST, ENVIRONMENT, SIGNS
from ncclcheck.model.events import (
    CollectiveTimeout,
    GroupStatus,
    Log,
    LogPosition,
    RankBehind,
    Remark,
    Words,
)
from ncclcheck.model.finding import Fix

_MOST_RANKS = 65536
_SHOWN = 8  # processes in the summary
_ENOUGH_TO_COUNT = 3  # ranks that waited, to tell from them how many there are
_ZERO_DID_NOT_ANSWER = "received errors while waiting for send/recv from rank 0"
_HUNG = re.compile(r"Heartbeat monitor timed out|watchdog got stuck for")
_TASK = re.compile(r"/task:(?P<task>\d{1,6})\b")
_DESYNC = re.compile(
    r"\[(?P<ranks>\d{1,6}(?:, ?\d{1,6}){0,200})\] (?:finished collective #\d+, but didn't join|"
    r"are the lagging ranks)"
)
_BUSY = re.compile(
    r"\b(?:tokeniz|preprocess|\bMap\b|mapping|sav(?:e|ing)|checkpoint|load(?:ing)?|download|compil|evaluat|generat|"
    r"encod|index|scanning|wrote|assembl|snapshot"
    r"|\d{1,12} ?[kMGT]?i?B/s\]|shard(?!ing strategy)|prepar|writ(?:e|ing)|upload|convert|copy|build|pack|filter|"
    r"shuffl|warm)|generating|running tokenizer",
    re.IGNORECASE,
)
_DONE = re.compile(  # loading that is over; the length of something, or a command, where no bar is drawn
    r"^(?:Loading|Map)\b.{0,60}(?:\btook \d|\b100 ?%)|^\s{0,80}(?:INFO:? {1,8})?Loaded\b|"
    r"^(?!.*\d ?%\|)(?:.*\blen(?:gth)?\b ?[:=]|.*`)",
    re.IGNORECASE,
)
_NO_ID = re.compile(r"retr(?:ie|ei)ving ncclUniqueId from \[(?P<root>\d{1,6})\].{0,200}[Tt]ime(?:d )?out")
_NO_WORK = re.compile(
    r"wait|\bSTARTING JOB\b|\bshut(?:ting)? ?down|\bterminat(?:ed|ing)|^WARN(?:ING)?\b|throughput: 0\.0",
    re.IGNORECASE,
)

# a person's command behind a shell's prompt, or a record of a logger that is not taken apart
_TYPED = re.compile(rf"{ENVIRONMENT}(?:\[?{AT_HOST}{SIGNS}|\$) \S|\{{\"|# [a-z]")

_STRAGGLER_FIXES = (
    Fix(
        "see what that rank does instead: its stack (py-spy), its log and its GPU; then do the slow work before the "
        "group is created or on all ranks, or raise the timeout: init_process_group(timeout=...)",
        ("py-spy dump --pid PID   # on that rank's host, while it hangs", "ncclcheck bench"),
    ),
)


@cause(
    "NC941",
    "slow-rank-timeout",
    "A rank was too late for a collective",
    fixes=(
        Fix(
            "do the slow work (preprocess, download, checkpoint) before init_process_group or on every rank; "
            "or raise the timeout: init_process_group(timeout=...); look for the straggler",
            (
                "TORCH_NCCL_TRACE_BUFFER_SIZE=2000 TORCH_NCCL_DUMP_ON_TIMEOUT=1 ...   # flight recorder: who is behind",
                "ncclcheck bench",
            ),
        ),
    ),
)
def slow_rank_timeout(log: Log) -> Iterator[Suspect]:
    """One rank is busy with something else (preprocessing, a checkpoint), until the other ranks time out.

    ## Why it matters
    The timeout runs from the moment the first rank enters the collective. Nothing is broken; one rank is only
    late.

    ## How to fix
    Do the long work before the group is created or on all ranks, or raise the timeout.

    ## Source
    torch: timeout of init_process_group and new_group (NCCL 10 minutes since 2.2, 30 before; others 30); its flight
    recorder dumps, matched by group and sequence number; NCCL RAS (src/ras/client_support.cc, since 2.24).
    """
    if late_ranks := behind(log):
        yield _straggler(log, late_ranks)
        return
    late, over = timeouts(log), remarks(log, "global-timeout")
    if not late and not over:
        yield from _waited_for_id(log)
    waiting = {timeout.place.rank for timeout in late if timeout.place.rank is not None}
    someone_else = waiting != set(
        range(world_size(log) or 0)
    )  # else all ranks waited, whoever was busy before
    busy = [words for words in _busy_speakers(log) if words.last.rank not in waiting and someone_else]
    absent = _absent(log, waiting)
    holdups = [
        remark
        for remark in (*remarks(log, "busy-word"), *filter(_begins_work, remarks(log, "finished")))
        if remark.place.rank not in waiting
    ]
    numbered = [
        *_named_by_barrier(log),
        *_named_by_jax(log),
        *_named_by_torch(log),
        *_behind_by_number(log, late),
        *_hung_itself(log, absent),
    ][:1]
    if numbered:
        yield from numbered
        return
    if late and busy:
        yield _busy(log, late, busy)
    elif late and holdups:
        yield _held_up(log, late, holdups)
    elif late or over:
        yield suspect(
            "Ranks waited for each other until they timed out; the log does not show which rank was late, or why."
            if len(absent) != 1
            else f"All ranks but rank {absent[0]} waited in a collective until they timed out.",
            [*late, *over],
            confidence="possible",
            hosts=tuple(f"rank {rank}" for rank in absent) if len(absent) == 1 else (),
        )


def _busy(log: Log, late: Sequence[CollectiveTimeout], busy: Sequence[Words]) -> Suspect:
    """Return the rank that worked on something else; the main process, which shows its progress, often has no label."""
    waiting = {timeout.place.rank for timeout in late if timeout.place.rank is not None}
    absent = _absent(log, waiting)
    places = [words.last for words in busy if words.last.rank is not None]
    first = busy[0].last
    if not places and len(absent) == 1:
        places = [LogPosition(first.file, first.line, absent[0], log.hosts_of_ranks.get(absent[0]))]
    return suspect(
        "The other ranks waited in a collective until they timed out, while one was busy with other work: "
        f"{busy[0].last_text.strip()[:120]}.",
        [*(Remark(words.last, words.last_text.strip(), "busy") for words in busy[:2]), *late],
        confidence="likely",
        at=late[0].place,
        hosts=culprits(log, places)
        if places
        else (*culprits(log, [words.last for words in busy])[:1], *_main(late)),
    )


def _held_up(log: Log, late: Sequence[CollectiveTimeout], holdups: Sequence[Remark]) -> Suspect:
    """Return the rank that the kernel, the driver or its own words say was held up."""
    return suspect(
        "The other ranks waited in a collective until they timed out, while one was held up: "
        f"{holdups[-1].text.strip()[:120]}.",
        [*holdups[-2:], *late],
        confidence="likely",
        at=late[0].place,
        hosts=culprits(log, [remark.place for remark in holdups[-1:]]) or _main(late),
    )


def _main(late: Sequence[CollectiveTimeout]) -> tuple[str, ...]:
    """Return the main process, whose words often have no label, if it is not among those that waited."""
    waiting = {timeout.place.rank for timeout in late if timeout.place.rank is not None}
    return ("rank 0",) if waiting and 0 not in waiting else ()


def _busy_speakers(log: Log) -> list[Words]:
    """Return the last lines of ranks that were busy with work of their own."""
    typed = [look.place for look in remarks(log, "inspected")]
    return [
        words
        for words in log.words
        if _BUSY.search(words.last_text)
        and not _NO_WORK.search(words.last_text)
        and not _TYPED.match(words.last_text)
        and not _DONE.search(words.last_text)
        and not any(  # what a command of a person answered
            look.file == words.last.file and look.line < words.last.line for look in typed
        )
    ]


def _begins_work(remark: Remark) -> bool:
    """Return True if the line says what begins, whatever it says is complete: `Saving ... of 3 complete epochs`."""
    match = _BUSY.match(remark.text)
    return match is not None and remark.text[match.start() : match.end() + 8].partition(" ")[0].endswith(
        "ing"
    )


def _waited_for_id(log: Log) -> Iterator[Suspect]:
    """Yield the rank that did not put NCCL's id into the store until the others timed out."""
    id_waits = [remark for remark in remarks(log, "store-wait") if _NO_ID.search(remark.text)]
    roots = {int(match["root"]) for remark in id_waits if (match := _NO_ID.search(remark.text))}
    if len(roots) != 1 or roots & {remark.place.rank for remark in id_waits}:
        return
    root = roots.pop()
    busy = [words for words in _busy_speakers(log) if words.last.rank in (None, root)]
    yield suspect(
        f"Rank {root} did not put NCCL's id into the store until the others timed out"
        + (f"; it was busy: {busy[0].last_text.strip()[:120]}." if busy else "."),
        [*(Remark(word.last, word.last_text.strip(), "busy") for word in busy[:2]), *id_waits],
        confidence="likely" if busy else "possible",
        at=id_waits[0].place,
        hosts=(f"rank {root}",),
    )


def _named_by_barrier(log: Log) -> Iterator[Suspect]:
    """Yield the ranks that monitored_barrier names: they did not come."""
    barriers, ranks = remarks(log, "monitored-barrier"), not_passed(log)
    if not ranks:
        yield from _did_not_answer(
            log, [remark for remark in barriers if _ZERO_DID_NOT_ANSWER in remark.text]
        )
    else:
        named = tuple(f"rank {rank}" for rank in ranks)
        yield suspect(
            f"{', '.join(named)} did not come to a monitored barrier in time.",
            barriers,
            confidence="likely",
            hosts=named,
            fixes=_STRAGGLER_FIXES,
        )


def _did_not_answer(log: Log, barriers: Sequence[Remark]) -> Iterator[Suspect]:
    """Yield rank 0, which answers all others and names who is late, where they timed out and it said nothing."""
    gave_up = [timeout for timeout in timeouts(log) if timeout.layer == "gloo"]
    if not barriers or not gave_up or any(event.place.rank == 0 for event in (*barriers, *gave_up)):
        return
    busy_ranks = {words.last.rank for words in _busy_speakers(log)}
    is_heard = any(place.rank == 0 for words in log.words for place in (words.first, words.last))
    if busy_ranks - {0, None}:
        return  # another one is late
    if not (busy_ranks or is_heard):
        return  # nothing of rank 0 is here: it may have said who was late
    yield suspect(
        "Rank 0 did not answer the others in a monitored barrier until they timed out.",
        [*barriers, *gave_up],
        confidence="likely",
        hosts=("rank 0",),
        fixes=_STRAGGLER_FIXES,
    )


def _named_by_jax(log: Log) -> Iterator[Suspect]:
    """Yield the tasks that JAX's coordination service names: they did not come to a barrier."""
    over, late = remarks(log, "task-barrier"), _late_tasks(log)
    ranks = sorted({int(match["task"]) for text in late.values() for match in _TASK.finditer(text)})
    if over and ranks:
        yield suspect(
            f"JAX says who did not come to a barrier in time: process {', '.join(map(str, ranks[:_SHOWN]))}.",
            [*over, *(remark for remark in remarks(log, "late-task") if remark.place in late)],
            confidence="likely",
            hosts=tuple(f"rank {rank}" for rank in ranks),
            fixes=_STRAGGLER_FIXES,
        )


def _late_tasks(log: Log) -> dict[LogPosition, str]:
    """Return the names of tasks after `timed out task names:`, on its line or one to a line directly below it."""
    named: dict[LogPosition, str] = {}
    below: tuple[str, int] | None = None
    for remark in sorted(remarks(log, "late-task"), key=lambda late: (late.place.file, late.place.line)):
        place = remark.place
        if not remark.text.startswith("/job:"):
            named[place] = remark.values.get("tasks", "")
            below = place.file, place.line + 1
        elif below == (place.file, place.line):
            named[place] = remark.text
            below = place.file, place.line + 1
    return named


def _hung_itself(log: Log, absent: Sequence[int]) -> Iterator[Suspect]:
    """Yield the only rank that did not wait, where its own heartbeat monitor says that it hung."""
    hangs = [
        remark for remark in remarks(log, "hang") if remark.place.rank in absent and _HUNG.search(remark.text)
    ]
    if len(absent) == 1 and hangs:
        yield suspect(
            f"All ranks but rank {absent[0]} waited in a collective until they timed out, and rank {absent[0]} says "
            "that its own threads hung.",
            [*hangs, *timeouts(log)],
            confidence="likely",
            hosts=culprits(log, [hangs[0].place]),
            fixes=_STRAGGLER_FIXES,
        )


def _named_by_torch(log: Log) -> Iterator[Suspect]:
    """Yield the ranks that torch's comparison of all ranks (TORCH_NCCL_DESYNC_DEBUG) calls lagging or missing."""
    desyncs = [remark for remark in remarks(log, "message") if remark.values.get("group") == "torch-desync"]
    ranks = sorted(
        {
            int(number)
            for remark in desyncs
            if (match := _DESYNC.search(remark.text))
            for number in match["ranks"].split(",")
            if number.strip().isdecimal()
        }
    )
    if ranks:
        named = tuple(f"rank {rank}" for rank in ranks)
        yield suspect(
            f"{', '.join(named)} did not come to the collective in which the others waited, as torch found out.",
            [remark for remark in desyncs if _DESYNC.search(remark.text)],
            confidence="likely",
            hosts=named,
            fixes=_STRAGGLER_FIXES,
        )


def _behind_by_number(log: Log, late: Sequence[CollectiveTimeout]) -> Iterator[Suspect]:
    """Yield the ranks whose collective has a lower number than the one in which all others of the group wait."""
    for ranks in reached_by_group(log, late):
        lowest = min(number for number, _ in ranks.values())
        highest = max(number for number, _ in ranks.values())
        first = [event for number, event in ranks.values() if number == lowest]
        ahead = [event for number, event in ranks.values() if number == highest]
        is_exact = {isinstance(event, GroupStatus) for _, event in ranks.values()}
        if (
            lowest < highest
            and len(is_exact) > 1
            and not all(isinstance(event, GroupStatus) for event in first)
        ):
            continue  # who waited in an earlier one may have come further
        if lowest < highest and len(first) < len(ahead) and len(first) + len(ahead) == len(ranks):
            named = culprits(log, [event.place for event in first])
            yield suspect(
                f"{' and '.join(named)} had only come to collective {lowest}, while the others waited in {highest} "
                "until they timed out.",
                [*first, *ahead],
                confidence="likely",
                hosts=named,
                fixes=_STRAGGLER_FIXES,
            )
            return
        if lowest < highest and len(ahead) < len(first) and len(is_exact) == 1:
            named = culprits(log, [event.place for event in ahead])
            yield suspect(
                f"{' and '.join(named)} had already come to collective {highest}, while most ranks waited in "
                f"{lowest}: it left some out, or had fewer batches.",
                [*ahead, *first],
                confidence="likely",
                hosts=named,
                fixes=_STRAGGLER_FIXES,
            )
            return


def _straggler(log: Log, late: Sequence[RankBehind]) -> Suspect:
    """The ranks that others were seen to wait for. One of which nothing was heard may only be missing here."""
    heard = [rank_behind for rank_behind in late if rank_behind.how != "no-dump"]
    shown = heard or list(late)
    first = shown[0].text
    return suspect(
        f"{first[:1].upper()}{first[1:]}.",
        [*shown, *waits(log)],
        confidence="likely" if heard else "possible",
        hosts=culprits(log, [rank_behind.place for rank_behind in shown]),
        fixes=_STRAGGLER_FIXES,
    )


def _absent(log: Log, waiting: set[int]) -> list[int]:
    """Ranks of the job that did not wait, where most did."""
    size = world_size(log) or len(log.hosts_of_ranks)
    if not world_size(log) and len(waiting) >= _ENOUGH_TO_COUNT:
        size = max(size, max(waiting) + 1)
    if size > _MOST_RANKS or len(waiting) * 2 < size or max(waiting, default=0) >= size:
        return []  # in the last case only some of the ranks are known
    return [rank for rank in range(size) if rank not in waiting]
