"""Hands the turns of a comparison on, where the run meets elsewhere than its ranks do.

Ranks know only the TCPStore that node 0 serves; who leads gives turns, and reads what came of them, in the run's store.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from ncclcheck.exchange.deadline import Deadline, polls
from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.base import Store
from ncclcheck.model.fact import Missing
from ncclcheck.run.context import in_background


def bridge_turns(names: Sequence[str], run: Store, ranks: Store, deadline: Deadline) -> None:
    """From now on, in the background, the ranks of the sets of those names get their turns."""
    for name in names:
        in_background(lambda name=name: _bridge(name, run, ranks, deadline), "turns")  # type: ignore[misc]


def _bridge(name: str, run: Store, ranks: Store, deadline: Deadline) -> None:
    for number in count():
        turn = _awaited(run, keys.bench_turn(name, number), run, name, deadline)
        if turn is None or ranks.set(keys.bench_turn(name, number), turn) is not None:
            return
        came = _awaited(ranks, keys.bench_round(name, number), run, name, deadline)
        if came is None or run.set(keys.bench_round(name, number), came) is not None:
            return


def _awaited(store: Store, key: str, run: Store, name: str, deadline: Deadline) -> bytes | None:
    """The value; None once the set is to end, or nothing more can be said."""
    for _ in polls(deadline):
        value = store.get(key)
        if not isinstance(value, Missing):
            return value
        over = run.get(keys.bench_stop(name))
        if not isinstance(over, Missing) or run.lost is not None or store.lost is not None:
            return None
    return None
