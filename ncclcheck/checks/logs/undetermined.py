"""NC944 undetermined."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from ncclcheck.checks.logs._causes import Suspect, cause, suspect
from ncclcheck.checks.logs._doubts import doubts
from ncclcheck.checks.logs._outcome import cut_short, stuck
from ncclcheck.checks.logs._view import (
    behind,
    culprits,
    exceptions,
    exits,
    finished_well,
    remarks,
    timeouts,
    troubles,
    waits,
)
from ncclcheck.checks.logs._works import shows_work
from ncclcheck.model.events import Event, Log, Remark
from ncclcheck.model.finding import Fix

_DEBUG = Fix(
    "run again with NCCL's own messages on all ranks, one file each, and give all files to ncclcheck explain",
    ("NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,BOOTSTRAP,ENV,NET NCCL_DEBUG_FILE=/tmp/nccl.%h.%p ...",),
    {"NCCL_DEBUG": "INFO"},
)
_WORKERS = Fix(
    "collect the output of the workers themselves: torchrun --log-dir DIR --tee 3 keeps it per rank, and "
    "error_file the exception",
    ("torchrun --log-dir logs --tee 3 --redirects 3 ...   # worker logs: logs/*/attempt_0/RANK/stderr.log",),
)
_RECORDER = Fix(
    "collect the logs of all ranks and the flight recorder's dumps: who is behind, and in which collective",
    (
        "TORCH_NCCL_TRACE_BUFFER_SIZE=2000 TORCH_NCCL_DUMP_ON_TIMEOUT=1 "
        "TORCH_NCCL_DEBUG_INFO_TEMP_FILE=/tmp/trace_ ...",
        "NCCL_DEBUG=INFO ...",
    ),
)
_OTHERS = Fix(
    "NCCL's messages are on already: give the files of all ranks to ncclcheck explain at once, above all those of the "
    "rank that ended first",
    ("ncclcheck explain /tmp/nccl.*",),
)
_WRONG = Fix(
    "find out what damages the data: without peer-to-peer access, with one algorithm, on other nodes, and with another "
    "version of NCCL",
    (
        "NCCL_P2P_DISABLE=1 ./build/all_reduce_perf -b 8 -e 128M -f 2 -c 1",
        "NCCL_ALGO=Ring ./build/all_reduce_perf -b 8 -e 128M -f 2 -c 1",
    ),
)
_STACK = Fix(
    "run again so that the process tells its stack when it crashes, or read it from the core file",
    (
        "PYTHONFAULTHANDLER=1 ...",
        "ulimit -c unlimited; ...   # then: coredumpctl gdb, or gdb python core, and bt",
    ),
)
_BEFORE = Fix("check the nodes and the network before the next start", ("ncclcheck preflight",))


@cause("NC944", "undetermined", "The logs do not show the cause", fixes=(_BEFORE,))
def undetermined(log: Log) -> Iterator[Suspect]:
    """The job failed or hangs, and these logs do not show why. The fixes say which variable or file would.

    ## Why it matters
    Guessing costs days. Usually one variable is missing (NCCL_DEBUG), the output of the rank that failed first,
    or the other ranks' logs.

    ## How to fix
    Collect what the fixes name, then run `ncclcheck explain` on all of it.

    ## Source
    NCCL's and torch's documented debug variables.
    """
    found: list[Event] = [*troubles(log), *stuck(log)]
    if finished_well(log):
        yield from _in_doubt(log)
        return
    if not found:
        yield from _cut_short(log) or _without_work(log) or _in_doubt(log)
        return
    ended = remarks(log, "scheduler-end")
    if ended:
        yield _ended_by_scheduler(ended, found)
        return
    refused = remarks(log, "platform-event")
    if refused:
        yield _by_platform(refused)
        return
    expired = remarks(log, "credentials")
    if expired:
        yield _expired(log, expired)
        return
    missing, fixes = _what_to_collect(log)
    own_remarks = own_words(log)
    open_question = suspect("", [*own_remarks, *found], confidence="possible", fixes=(*fixes, _BEFORE))
    quoted = " ".join(map(_quoted, own_remarks))
    summary = (
        f"The log does not show the cause. {quoted}{' ' if quoted else ''}To find it, collect {missing}."
    )
    yield replace(open_question, summary=summary)


def _cut_short(log: Log) -> list[Suspect]:
    """Return that the log ends with the start of NCCL."""
    begun = cut_short(log)
    if not begun:
        return []
    return [
        _unfinished(
            begun,
            "The log ends with the start of NCCL: it shows neither the program's work nor an error. If the "
            "job hangs there, collect the stacks of its ranks (py-spy dump) and the logs of all nodes.",
        )
    ]


def _without_work(log: Log) -> list[Suspect]:
    """Return that the log shows neither an error nor that the job did any work."""
    if shows_work(log) or not (log.events or log.processes):
        return []
    last = max(log.words, key=lambda words: (words.last.file, words.last.line), default=None)
    return [
        _unfinished(
            [Remark(last.last, last.last_text, "used")] if last is not None else log.events[-1:],
            "The log shows neither an error nor that the job did any work. If it hangs after this line, collect the "
            "stacks of its ranks (py-spy dump) and the logs of all nodes.",
        )
    ]


def _in_doubt(log: Log) -> list[Suspect]:
    """Return what keeps a log from being called fine in which nothing says that the job failed."""
    doubt = doubts(log)
    if doubt is None:
        return []
    quoted = doubt.lines[-1].text.strip()[:160]
    return [
        _unfinished(
            doubt.lines,
            f"Nothing in the log says that the job failed, but {doubt.why}: “{quoted}”. If it failed or was slow, "
            "collect its last lines and the logs of all nodes.",
        )
    ]


def _unfinished(lines: Sequence[Event], summary: str) -> Suspect:
    return replace(
        suspect("", lines, confidence="possible", fixes=(_WORKERS, _RECORDER)),
        summary=summary,
    )


def _ended_by_scheduler(ended: Sequence[Remark], found: Sequence[Event]) -> Suspect:
    """Return that the job did not fail by itself: time limit, preemption, requeue or a failed node."""
    why = ended[0].values.get("why", "").lower()
    fixes = {
        "time limit": "ask for more time (--time), or save checkpoints and requeue the job before its limit "
        "(--signal=B:USR1@300, --requeue)",
        "node failure": "look at the node that failed (sinfo -R, its kernel's log), exclude it and start again",
    }
    nodes = tuple(dict.fromkeys(remark.values["node"] for remark in ended if "node" in remark.values))
    text = next((fix for key, fix in fixes.items() if key in why), "")
    return suspect(
        f"The scheduler ended the job ({why}); the log does not show that it failed by itself.",
        [*ended, *found],
        confidence="possible",
        hosts=nodes,
        fixes=(
            Fix(text or "save checkpoints often and requeue the job (--requeue)", ("sacct -j JOBID --long",)),
        ),
    )


def _by_platform(refused: Sequence[Remark]) -> Suspect:
    """Return that Kubernetes evicted the pod, or could not start it."""
    why = next((value for value in refused[0].values.values() if value), "")
    return suspect(
        f"Kubernetes ended the pod or could not start it ({why}); the log does not show that the program failed.",
        refused,
        confidence="possible",
        fixes=(
            Fix(
                "read the events of the pod and of its node",
                ("kubectl describe pod POD", "kubectl get events"),
            ),
        ),
    )


def _expired(log: Log, expired: Sequence[Remark]) -> Suspect:
    """Return that the job could not read or write a store because its credentials had expired."""
    return suspect(
        f"Credentials of the job were refused or had expired ({expired[0].values.get('what', '')}).",
        expired,
        confidence="possible",
        hosts=culprits(log, [remark.place for remark in expired[:1]]),
        fixes=(
            Fix("renew the credentials, or use ones that outlive the job (a role, a refreshed token)", ()),
        ),
    )


def own_words(log: Log) -> list[Remark]:
    """Return NCCL's first warning that is not harmless, torch's `Last error:` where it is another, and NCCL's hint."""
    warnings = [remark for remark in remarks(log, "nccl-warn") if remark.values.get("kind") != "harmless"]
    chosen = [remark for remark in warnings if not remark.text.startswith("Last error:")][:1]
    chosen += [
        remark
        for remark in warnings
        if remark.text.startswith("Last error:")
        and (not chosen or remark.values.get("group") != chosen[0].values.get("group"))
    ][:1]
    return [*chosen, *remarks(log, "nccl-hint")[:1]]


def _quoted(remark: Remark) -> str:
    """Return what NCCL says in a line, and what it means by it."""
    if remark.topic == "nccl-hint":
        return f"NCCL's hint: {remark.values.get('hint', '').rstrip('.')}."
    speaker = (
        "torch tells NCCL's last error"
        if remark.text.startswith("Last error:")
        else "NCCL's first warning is"
    )
    text, means = remark.values.get("text", "")[:160], remark.values.get("means", "")
    return f"{speaker} “{text}”" + (f": {means}." if means else ", which ncclcheck does not know.")


def _what_to_collect(log: Log) -> tuple[str, tuple[Fix, ...]]:
    if any(rank_behind.how == "no-dump" for rank_behind in behind(log)):
        return "the flight recorder's dumps and the logs of the ranks that left none here", (_RECORDER,)
    if waits(log):
        return (
            "NCCL_DEBUG=INFO output of all ranks: all ranks with a log are in the same collective, so the "
            "network or a GPU hangs, or the job is only busy",
            (_DEBUG,),
        )
    if timeouts(log):
        return (
            "the logs of all ranks (only those that waited are here), NCCL_DEBUG=INFO and the flight recorder's dump",
            (_RECORDER, _DEBUG),
        )
    crashes = remarks(log, "crash")
    if crashes and not exceptions(log, "ordinary"):
        return f"the stack of the process that crashed (“{crashes[0].text.strip()[:120]}”)", (_STACK,)
    if exits(log) and not exceptions(log, "ordinary", "after-effect") and not remarks(log, "generic-nccl"):
        return (
            "the failing worker's own output (torchrun --log-dir and --tee, or error_file), which is not in this file",
            (_WORKERS,),
        )
    if remarks(log, "wrong-results"):
        return (
            "the same test with NCCL_P2P_DISABLE=1, with NCCL_ALGO=Ring and on other nodes: the results that "
            "nccl-tests computed are wrong, so peer-to-peer access, a GPU or this NCCL version damages data",
            (_WRONG,),
        )
    if not log.processes:
        return "NCCL's messages: set NCCL_DEBUG=INFO (at least WARN) on all ranks, the other side's too", (
            _DEBUG,
        )
    return (
        "the logs of the ranks that are not in this file, the other side's first, and the workers' own output",
        (_OTHERS, _WORKERS),
    )
