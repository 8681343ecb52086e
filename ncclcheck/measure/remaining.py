"""How far a benchmark is, and how long it will still take."""

from __future__ import annotations

from msgspec import Struct

from ncclcheck.model.bench import BenchPlan

_CALL_BYTES = 256 << 10  # a call costs about as much as so many bytes more, on any network


class TimeLeft(Struct, frozen=True):
    """How far a benchmark is. `where`: the place of the rank that is ahead; `left_s`: None while nothing is known."""

    where: str
    points: int
    of_points: int
    left_s: float | None


def seconds_left(plan: BenchPlan, finished: int, iteration: int, elapsed_s: float) -> float | None:
    """Return about how long the rest of the plan takes, after so many points and iterations of the next one.

    Where each point ends as soon as it is known well enough, the rest takes as long as the points up to now did, and
    never more than what is left of the budget. With a fixed number of iterations, time goes with the bytes.
    """
    sizes = [size for _ in plan.ops for size in plan.sizes_bytes]
    if finished >= len(sizes):
        return None  # only what follows the plan is left
    if plan.iters is None:
        budget_s = max(0.0, plan.budget_s - elapsed_s)
        return min(budget_s, elapsed_s / finished * (len(sizes) - finished)) if finished else budget_s
    work = [size + _CALL_BYTES for size in sizes]
    done = sum(work[:finished]) + work[finished] * min(1.0, iteration / plan.iters)
    return elapsed_s * (sum(work) - done) / done if done > 0 else None
