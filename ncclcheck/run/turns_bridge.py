"""Hands the turns of a comparison on, where the run meets elsewhere than its ranks do.

Ranks know only the TCPStore that node 0 serves; who leads gives turns, and reads what came of them, in the run's store.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from ncclcheck.bench.turns import round_key, turn_key
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.store.tcp import TcpStore, polls
from ncclcheck.model.fact import Missing
from ncclcheck.run.context import in_background


def bridge_turns(names: Sequence[str], run: TcpStore, ranks: TcpStore, deadline: Deadline) -> None:
    """From now on, in the background, the ranks of the sets of those names get their turns."""
    for name in names:
        in_background(lambda name=name: _bridge(name, run, ranks, deadline), "turns")  # type: ignore[misc]


def _bridge(name: str, run: TcpStore, ranks: TcpStore, deadline: Deadline) -> None:
    for number in count():
        turn = _awaited(run, turn_key(name, number), run, name, deadline)
        if turn is None or ranks.set(turn_key(name, number), turn) is not None:
            return
        came = _awaited(ranks, round_key(name, number), run, name, deadline)
        if came is None or run.set(round_key(name, number), came) is not None:
            return


def _awaited(store: TcpStore, key: str, run: TcpStore, name: str, deadline: Deadline) -> bytes | None:
    """The value; None once the set is to end, or nothing more can be said."""
    for _ in polls(deadline):
        value = store.get(key)
        if not isinstance(value, Missing):
            return value
        over = run.get(f"{name}/stop")
        if not isinstance(over, Missing) or run.lost is not None or store.lost is not None:
            return None
    return None
