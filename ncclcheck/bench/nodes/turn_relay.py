"""Relays the turns of a comparison, where the run meets elsewhere than its ranks do.

Ranks know only the TCPStore that node 0 serves; the coordinator gives turns, and reads their results, in the run's
store.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from itertools import count

from msgspec import Struct

from ncclcheck.exchange.deadline import Deadline, polls
from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.base import Store
from ncclcheck.model.fact import Missing


class _Relay(Struct, frozen=True):
    name: str  # of the set of workers
    run: Store
    ranks: Store
    deadline: Deadline

    def relay(self) -> None:
        for number in count():
            turn = self._awaited(self.run, keys.bench_turn(self.name, number))
            if turn is None or self.ranks.set(keys.bench_turn(self.name, number), turn) is not None:
                return
            result = self._awaited(self.ranks, keys.bench_round(self.name, number))
            if result is None or self.run.set(keys.bench_round(self.name, number), result) is not None:
                return

    def _awaited(self, store: Store, key: str) -> bytes | None:
        """Return the value; None once the set is to end, or nothing more can be passed on."""
        for _ in polls(self.deadline):
            value = store.get(key)
            if not isinstance(value, Missing):
                return value
            is_stopped = not isinstance(self.run.get(keys.bench_stop(self.name)), Missing)
            if is_stopped or self.run.lost is not None or store.lost is not None:
                return None
        return None


def relay_turns(names: Sequence[str], run: Store, ranks: Store, deadline: Deadline) -> None:
    """Start to pass the turns of these sets of workers on to their ranks, in the background."""
    for name in names:
        relay = _Relay(name, run, ranks, deadline)
        threading.Thread(target=relay.relay, name="turns", daemon=True).start()
