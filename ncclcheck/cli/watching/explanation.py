"""`explain` over everything that was kept of a job that hangs or failed, as a part of the watcher's report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from ncclcheck.cli.explaining import explain_log
from ncclcheck.cli.watching.evidence import RAS_BEFORE, RAS_NOW
from ncclcheck.facts.bounded_call import within
from ncclcheck.logs.log_files import read_logs
from ncclcheck.logs.ras import log_of, read_status
from ncclcheck.model.errors import DecodeError, UsageError
from ncclcheck.model.events import Log
from ncclcheck.model.fact import Missing
from ncclcheck.model.report import Report
from ncclcheck.run.judge import RunClock
from ncclcheck.timeouts import WATCH_EXPLAIN_S

_MOST_RAS_BYTES = 64 << 20


def explained_by(folder: Path, output: Sequence[Path], clock: RunClock) -> Report | Missing:
    """Return what `explain` says of the job's output, NCCL's and the kernel's logs, flight recorders and RAS."""
    return within(WATCH_EXPLAIN_S, _explain, folder, output, clock)


def _explain(folder: Path, output: Sequence[Path], clock: RunClock) -> Report:
    files = [
        *output,
        *sorted(folder.glob("nccl.*.log")),
        *sorted(folder.glob("nccl_trace_rank_*")),
        *sorted(folder.glob("look-*/kernel.log")),
    ]
    try:
        log = read_logs([str(file) for file in files if file.is_file()]) if files else Log(())
    except UsageError:  # not one of them could be read
        log = Log(())
    return explain_log(_with_ras(log, folder), clock)


def _with_ras(log: Log, folder: Path) -> Log:
    """Return the log with what the last two answers of NCCL's RAS mean together."""
    for place in sorted(folder.glob("look-*"), key=lambda path: int(path.name[5:] or 0), reverse=True):
        before, now = place / RAS_BEFORE, place / RAS_NOW
        if not (before.is_file() and now.is_file()):
            continue
        try:
            answers = [read_status(file.read_bytes()[:_MOST_RAS_BYTES]) for file in (before, now)]
        except DecodeError:
            return log
        ras_log = log_of(answers[0], answers[1], str(now), now.stat().st_size)
        return replace(log, files=(*log.files, *ras_log.files), events=(*log.events, *ras_log.events))
    return log
