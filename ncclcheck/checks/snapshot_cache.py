"""Values that several checks need of the same Snapshot, worked out once."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from ncclcheck.model.snapshot import Snapshot

_KEPT = 16  # of a run there is the whole Snapshot, and one with a node of each kind for each set of sections
P = ParamSpec("P")
T = TypeVar("T")


def once_per_snapshot(
    function: Callable[Concatenate[Snapshot, P], T],
) -> Callable[Concatenate[Snapshot, P], T]:
    """Remember what a pure function returned for the latest Snapshots; its further arguments must be hashable.

    Snapshots are told apart by identity: to compare or hash the facts of thousands of nodes costs more than a check.
    """
    latest: dict[int, tuple[Snapshot, dict[Hashable, T]]] = {}

    @wraps(function)
    def remembered(snapshot: Snapshot, *arguments: P.args, **named: P.kwargs) -> T:
        if id(snapshot) not in latest:
            if len(latest) >= _KEPT:
                del latest[next(iter(latest))]
            latest[id(snapshot)] = snapshot, {}
        known = latest[id(snapshot)][1]
        key: Any = (arguments, tuple(named.items()))
        if key not in known:
            known[key] = function(snapshot, *arguments, **named)
        return known[key]

    return remembered  # type: ignore[return-value]  # mypy takes the first parameter as a named one
