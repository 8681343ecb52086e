"""Values that several checks need of the same subject, a Snapshot or a Log, worked out once."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

_KEPT = 16  # of a run there is the whole Snapshot, and one with a node of each kind for each set of sections
P = ParamSpec("P")
S = TypeVar("S")
T = TypeVar("T")


def once_per_subject(
    function: Callable[Concatenate[S, P], T],
) -> Callable[Concatenate[S, P], T]:
    """Remember what a pure function returned for the latest subjects; its further arguments must be hashable.

    Subjects are distinguished by identity: to compare or hash the facts of thousands of nodes costs more than a check.
    """
    latest: dict[int, tuple[S, dict[Hashable, T]]] = {}

    @wraps(function)
    def remembered(subject: S, *arguments: P.args, **named: P.kwargs) -> T:
        if id(subject) not in latest:
            if len(latest) >= _KEPT:
                del latest[next(iter(latest))]
            latest[id(subject)] = subject, {}
        known = latest[id(subject)][1]
        key: Any = (arguments, tuple(named.items()))
        if key not in known:
            known[key] = function(subject, *arguments, **named)
        return known[key]

    return remembered  # type: ignore[return-value]  # mypy takes the first parameter as a named one
