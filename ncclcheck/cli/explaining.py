"""From the logs of a job to the report on them: read, ask all causes, rank, conclude."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from ncclcheck.checks.logs._outcome import Explained, explained
from ncclcheck.checks.registry import Selection, run_checks
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.ras_client import NoAnswerError, address_of, ask
from ncclcheck.logs.log_files import read_logs
from ncclcheck.logs.ras import log_of, read_status
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.events import Log, LogFile
from ncclcheck.model.report import Report
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.report.explain import explain_report
from ncclcheck.run.judge import RunClock, start_clock
from ncclcheck.timeouts import BETWEEN_RAS_ANSWERS_S, RAS_ANSWER_S


def explain_files(names: Sequence[str], say: Callable[[str], None] = lambda _: None) -> Report:
    """Return the report on the files. Raises UsageError where not one of them could be read."""
    clock = start_clock()
    return explain_log(read_logs(names, say), clock)


def explain_ras(address: str) -> Report:
    """Return the report on a running job, by two answers of NCCL RAS at `HOST[:PORT]`; unknown where nobody answers.

    Raises UsageError where the address is none.
    """
    clock = start_clock()
    host, port = address_of(address)
    name = f"NCCL RAS at {host}:{port}"
    try:
        before = read_status(ask(host, port, Deadline(RAS_ANSWER_S)))
        time.sleep(BETWEEN_RAS_ANSWERS_S)
        answer = ask(host, port, Deadline(RAS_ANSWER_S))
        log = log_of(before, read_status(answer), name, len(answer))
    except (NoAnswerError, DecodeError) as error:
        return explain_report(
            Log((LogFile(name, 0, 0),)),
            (),
            Explained("nothing", (), f"{error}"),
            created=clock.created,
            elapsed_s=time.monotonic() - clock.started,
        )
    return explain_log(log, clock)


def explain_log(log: Log, clock: RunClock) -> Report:
    """Return the report on a log that was read; the same log gives the same report, times apart."""
    runs = run_checks(Snapshot(nodes=(), log=log), Selection(), "log")
    return explain_report(
        log, runs, explained(log, runs), created=clock.created, elapsed_s=time.monotonic() - clock.started
    )
