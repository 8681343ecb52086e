"""NC944 undetermined."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from ncclcheck.checks.logs._causes import Suspect, cause, suspect
from ncclcheck.checks.logs._outcome import stuck
from ncclcheck.checks.logs._view import behind, exceptions, exits, remarks, timeouts, troubles, waits
from ncclcheck.model.events import Event, Log
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
_BEFORE = Fix("check the nodes and the network before the next start", ("ncclcheck preflight",))


@cause("NC944", "undetermined", "The log shows the cause", fixes=(_BEFORE,))
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
    if not found:
        return
    missing, fixes = _what_to_collect(log)
    open_question = suspect("", found, confidence="possible", fixes=(*fixes, _BEFORE))
    yield replace(open_question, summary=f"The log does not show the cause. To find it, collect {missing}.")


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
    if exits(log) and not exceptions(log, "ordinary", "after-effect") and not remarks(log, "generic-nccl"):
        return (
            "the failing worker's own output (torchrun --log-dir and --tee, or error_file), which is not in this file",
            (_WORKERS,),
        )
    if not log.processes:
        return "NCCL's messages: set NCCL_DEBUG=INFO (at least WARN) on all ranks, the other side's too", (
            _DEBUG,
        )
    return "NCCL_DEBUG=INFO output of all ranks, the other side's too, with worker logs", (_DEBUG, _WORKERS)
