"""All pairs of a round begin at the same time, and none stops before all have measured.

What they share shows only while all of them send: pairs that are done first leave their part of a trunk to the others,
whose rates then tell of more than their share.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from ncclcheck.bench.pairs.pair_task import PairTask
from ncclcheck.exchange.store import keys
from ncclcheck.timeouts import PAIR_BARRIER_POLL_S, PAIR_BARRIER_S

if TYPE_CHECKING:
    from torch.distributed import Store

POLLS_PER_S = 20_000  # of all ranks together, which one store answers
_ALL = b"1"


class PairBarrier:
    """The barrier of the ranks of all pairs of a round. State: whether this rank still waits for it, and until when."""

    def __init__(self, store: Store, task: PairTask, moved: Callable[[], object]) -> None:
        """Who waits for the others says so by `moved`: its pair does not hang."""
        self._store, self._ranks, self._prefix = store, task.barrier_ranks, task.round_prefix
        self.transfer_s = task.transfer_s  # which a counted part should take
        self._moved = moved
        self._until = self._next_look = 0.0

    def meet(self, direction: str) -> None:
        """Return when all ranks are here, or after some seconds: a pair that hangs does not keep the others."""
        if not self._ranks:
            return
        begins = keys.barrier_opens(self._prefix, direction)
        if self._store.add(keys.barrier_ranks(self._prefix, direction), 1) >= self._ranks:
            self._store.set(begins, _ALL)
            return
        until = time.monotonic() + PAIR_BARRIER_S
        while time.monotonic() < until:
            if self._store.check([begins]):
                return
            self._moved()
            time.sleep(max(PAIR_BARRIER_POLL_S, self._ranks / POLLS_PER_S))
        self._ranks = 0  # later directions do not wait for them again

    def has_come(self, stage: str) -> None:
        """Tell the receivers of the other pairs that this one is at that stage."""
        self._until, self._next_look = time.monotonic() + PAIR_BARRIER_S, 0.0
        receivers = self._ranks // 2
        if receivers and self._store.add(keys.barrier_ranks(self._prefix, stage), 1) >= receivers:
            self._store.set(keys.barrier_opens(self._prefix, stage), _ALL)

    def is_complete(self, stage: str) -> bool:
        """Return True if all receivers are at that stage, or after some seconds; until then this pair is their load."""
        now = time.monotonic()
        if self._ranks and now < self._next_look:  # a look takes time in which a fast path is idle
            return False
        self._next_look = now + max(PAIR_BARRIER_POLL_S, self._ranks / POLLS_PER_S)
        if not self._ranks or self._store.check([keys.barrier_opens(self._prefix, stage)]):
            return True
        if now < self._until:
            return False
        self._ranks = 0
        return True
