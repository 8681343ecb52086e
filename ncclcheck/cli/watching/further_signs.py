"""Signs of an advance that /proc does not show: NCCL's counts of collectives (RAS), and GPUs that compute (NVML).

Both are asked at each look at which nothing else moved, beside the looks, which wait for neither.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from ncclcheck.cli.watching.machine_view import ask_ras, counts_grew
from ncclcheck.facts.bounded_call import Started, start
from ncclcheck.facts.gpu.gpu_load import GpuLoads
from ncclcheck.facts.job.rank_processes import RankProcess, own_pids_of, pids_of
from ncclcheck.measure.watching.gpu_signs import gpus_compute
from ncclcheck.model.fact import Missing
from ncclcheck.timeouts import WATCH_NVML_S

_Ranks = tuple[RankProcess, ...]
_REST = 200.0  # times as long as an answer took: half a percent of the time goes into asking
_MOST_REST = 0.25  # of the patience, in which something must be seen


class FurtherSigns:
    """What RAS and NVML tell. State: RAS's last answer, and the questions under way."""

    def __init__(self, ras: str, patience_s: float, loads: GpuLoads | None = None) -> None:
        self._ras_address = ras
        self._before = b""
        self._loads = loads or GpuLoads()
        self._ras = _Question(self._counts_grew, _MOST_REST * patience_s)
        self._gpus = _Question(self._gpus_compute, _MOST_REST * patience_s)

    def seen(self, ranks: _Ranks, *, asks_ras: bool) -> bool:
        """Return whether the last answers showed an advance, and ask again. `asks_ras`: no other watcher does."""
        gpus = self._gpus.answer(ranks)
        return (self._ras.answer(ranks) if asks_ras else False) or gpus

    def rest(self) -> None:
        """Forget what was answered: the job moved meanwhile."""
        self._before = b""

    def close(self) -> None:
        """End the process that asks NVML."""
        self._loads.close()

    def _counts_grew(self, ranks: _Ranks) -> bool:
        answer = ask_ras(self._ras_address)
        grew = counts_grew(self._before, answer, own_pids_of(ranks))
        self._before = answer
        return grew

    def _gpus_compute(self, ranks: _Ranks) -> bool:
        loads = self._loads.read(WATCH_NVML_S)
        if isinstance(loads, Missing):
            return False
        listed = {pid for load in loads for pid in load.pids or ()}
        return gpus_compute(loads, pids_of(ranks), {pid for pid in listed if Path(f"/proc/{pid}").exists()})


class _Question:
    """One that is asked in a thread. State: the one under way, and when the next one may be asked."""

    def __init__(self, ask: Callable[[_Ranks], bool], most_rest_s: float) -> None:
        self._ask, self._most_rest_s = ask, most_rest_s
        self._asked: Started[tuple[bool, float]] | None = None
        self._next_s = 0.0

    def answer(self, ranks: _Ranks) -> bool:
        """Return the answer that has come since, False if none has; ask again unless it is too early."""
        found = False
        if self._asked is not None:
            answer = self._asked.result(0.0)
            if isinstance(answer, Missing) and answer.missing == "timeout":
                return False  # still at work
            self._asked = None
            if not isinstance(answer, Missing):
                found, took_s = answer
                self._next_s = time.monotonic() + min(_REST * took_s, self._most_rest_s)
        if time.monotonic() >= self._next_s:
            self._asked = start(self._timed, ranks)
        return found

    def _timed(self, ranks: _Ranks) -> tuple[bool, float]:
        began = time.monotonic()
        return self._ask(ranks), time.monotonic() - began
