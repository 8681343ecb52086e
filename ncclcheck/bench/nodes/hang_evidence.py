"""What a node sees of ranks that hang, before it ends them: NCCL's RAS threads, and new GPU errors of the kernel."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from ncclcheck import timeouts
from ncclcheck.bench.culprits import RankState
from ncclcheck.checks.xid import xid_demand
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.ras_client import NoAnswerError, ask
from ncclcheck.facts.gpu.gpu_log import read_gpu_log
from ncclcheck.logs.ras import log_of, read_status
from ncclcheck.model.bench import HangEvidence, NodeLog, RankFailure
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.events import RankBehind
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.gpu import GpuLog, LoggedError

_LOOPBACK = "127.0.0.1"
_LONGEST_TEXT = 300
_NOT_ASKED = Missing("absent", "not asked: no rank of this node waited for long")


class HangWatch:
    """Looks at ranks that make no progress. A class because RAS is asked in a thread, while the ranks still live.

    Node 0 says "stop" to all nodes at once, and then nobody is left to answer. So RAS is asked as soon as a rank has
    been inside a call for seconds, on the node of rank 0 alone: its answer is about all ranks.
    """

    def __init__(self, *, asks_ras: bool, read_log: Callable[[float], Fact[GpuLog]] = read_gpu_log) -> None:
        self._began_s = time.monotonic()
        self._read_log = read_log
        self.port = _free_port() if asks_ras else 0
        self._asked = False
        self._ras: Fact[str] = _NOT_ASKED
        self._behind: tuple[tuple[int, str], ...] = ()

    def environment(self) -> dict[str, str]:
        """Return what the workers need so that RAS of theirs answers here, and not that of another job."""
        return {"NCCL_RAS_ADDR": f"{_LOOPBACK}:{self.port}"} if self.port else {}

    def look(self, states: Sequence[RankState]) -> None:
        """Ask RAS once for each time that ranks make no progress."""
        waits = any(state.inside and state.idle_s > timeouts.HANG_LOOK_S for state in states)
        if waits and not self._asked and self.port:
            threading.Thread(target=self._ask, name="ras", daemon=True).start()
        self._asked = waits

    def evidence(self, states: Sequence[RankState]) -> HangEvidence | None:
        """Return what was seen; None where every rank is done."""
        if all(state.done for state in states):
            return None
        return HangEvidence(self._ras, self._behind, self._new_errors())

    def _new_errors(self) -> Fact[tuple[LoggedError, ...]]:
        elapsed_s = time.monotonic() - self._began_s
        log = self._read_log(timeouts.HANG_LOG_S)
        if isinstance(log, Missing):
            return log
        return tuple(error for error in log.errors if error.seconds_ago <= elapsed_s)

    def _ask(self) -> None:
        try:
            answer = ask(_LOOPBACK, self.port, Deadline(timeouts.RAS_ANSWER_S))
            status = read_status(answer)
        except (NoAnswerError, DecodeError) as error:
            self._ras = Missing("absent", str(error)[:_LONGEST_TEXT])
            return
        events = log_of(status, status, "NCCL RAS", len(answer)).events  # nothing has moved for seconds
        self._behind = tuple(
            (event.place.rank, event.text[:_LONGEST_TEXT])
            for event in events
            if isinstance(event, RankBehind) and event.place.rank is not None
        )
        self._ras = "; ".join(event.text for event in events)[:_LONGEST_TEXT]


def culprits(
    failures: Sequence[RankFailure], logs: Sequence[NodeLog], states: Sequence[RankState]
) -> tuple[RankFailure, ...]:
    """Return who is at fault by the evidence of the nodes, where all ranks looked alike; else the same, with it."""
    errors = _errors_of(failures, logs, states)
    if any(failure.state != "stuck" for failure in failures):
        return tuple(_with(failure, errors.get(failure.rank, "")) for failure in failures)
    if errors:
        faulty = (failure for failure in failures if failure.rank in errors)
        return tuple(replace(failure, state="hung", detail=errors[failure.rank]) for failure in faulty)
    seen = {rank: text for log in logs if log.hang is not None for rank, text in log.hang.behind}
    behind = [failure for failure in failures if failure.rank in seen]
    if 0 < 2 * len(behind) < len(failures):
        return tuple(
            replace(failure, state="late", detail=f"by NCCL RAS, {seen[failure.rank]}") for failure in behind
        )
    ras_answers = [log.hang.ras for log in logs if log.hang is not None and isinstance(log.hang.ras, str)]
    return tuple(_with(failure, *ras_answers) for failure in failures)


def _with(failure: RankFailure, *more: str) -> RankFailure:
    return replace(failure, detail="; ".join(filter(None, (failure.detail, *more))))


def _errors_of(
    failures: Sequence[RankFailure], logs: Sequence[NodeLog], states: Sequence[RankState]
) -> dict[int, str]:
    """Return the first error that the kernel logged of a rank's GPU; of one whose GPU is not known, of its node's."""
    pci_of = {state.rank: state.gpu_pci for state in states}
    found: dict[int, str] = {}
    for log in logs:
        if log.hang is None or isinstance(log.hang.gpu_errors, Missing):
            continue
        for error in sorted(filter(_is_harmful, log.hang.gpu_errors), key=lambda error: -error.seconds_ago):
            text = (
                f"the kernel logged {error.kind} {error.number} of its GPU during the benchmark: {error.text}"
            )
            for failure in failures:
                if failure.host == log.host and pci_of.get(failure.rank, "") in (error.pci, ""):
                    found.setdefault(failure.rank, text)
    return found


def _is_harmful(error: LoggedError) -> bool:
    return error.kind == "Xid" and xid_demand(error.number, error.text) not in ("nothing", None)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind((_LOOPBACK, 0))
        port: int = listener.getsockname()[1]
        return port
