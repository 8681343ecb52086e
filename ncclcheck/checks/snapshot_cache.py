"""Values that several checks need of the same Snapshot, worked out once."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from ncclcheck.model.snapshot import Snapshot

P = ParamSpec("P")
T = TypeVar("T")


def once_per_snapshot(
    function: Callable[Concatenate[Snapshot, P], T],
) -> Callable[Concatenate[Snapshot, P], T]:
    """Remember what a pure function returned for the latest Snapshot; its further arguments must be hashable.

    Snapshots are told apart by identity: to compare or hash the facts of thousands of nodes costs more than a check.
    """
    latest: list[Snapshot] = []
    known: dict[Hashable, T] = {}

    @wraps(function)
    def remembered(snapshot: Snapshot, *arguments: P.args, **named: P.kwargs) -> T:
        if not latest or latest[0] is not snapshot:
            latest[:] = [snapshot]
            known.clear()
        key: Any = (arguments, tuple(named.items()))
        if key not in known:
            known[key] = function(snapshot, *arguments, **named)
        return known[key]

    return remembered  # type: ignore[return-value]  # mypy takes the first parameter as a named one
