"""Whether a setting that wants another algorithm or protocol really changed it, as NCCL's log of the calls says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ncclcheck.model.benchmarks.trials import CallChoice, Point

_ONLY_CHOOSE = frozenset({"NCCL_ALGO", "NCCL_PROTO"})  # what else could make it faster is not asked
UNTOLD = "NCCL's log does not say whether the algorithm changed"


def is_unchanged(
    arm: Mapping[str, str], as_is: Sequence[CallChoice], chosen: Sequence[CallChoice], points: Sequence[Point]
) -> bool:
    """Return whether NCCL ran these points, at which the arm was faster, as it does without the arm."""
    if not _chooses(arm) or not points:
        return False
    return all(_of(as_is, point) == _of(chosen, point) != frozenset() for point in points)


def is_unknown(
    arm: Mapping[str, str], as_is: Sequence[CallChoice], chosen: Sequence[CallChoice], points: Sequence[Point]
) -> bool:
    """Return whether the log leaves it open at one of these points."""
    return _chooses(arm) and any(not _of(as_is, point) or not _of(chosen, point) for point in points)


def _chooses(arm: Mapping[str, str]) -> bool:
    return bool(arm) and set(arm) <= _ONLY_CHOOSE


def _of(choices: Sequence[CallChoice], point: Point) -> frozenset[tuple[str, str]]:
    """Return the algorithms and protocols of that point, in one spelling."""
    return frozenset(
        (choice.algorithm.lower(), choice.protocol.lower())
        for choice in choices
        if (choice.op, choice.size_bytes) == point
    )
