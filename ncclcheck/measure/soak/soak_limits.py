"""What an order to soak may ask for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ncclcheck.model.benchmarks.op import Op
from ncclcheck.model.benchmarks.soak import LEAST_DROP, MOST_DROP, Soak, SoakPlan
from ncclcheck.timeouts import SOAK_LEAST_BLOCK_S, SOAK_LONGEST_BLOCK_S, SOAK_LONGEST_S, SOAK_PAIRS_S

LEAST_BLOCKS = 16  # fewer tell nothing about a change
PAIRS_EVERY = 10  # blocks
FIRST_TURNS = 3  # of the first round of pairs; later there is one
_SPARE = 1.1  # what blocks take beside measuring
LEAST_DUTY = 0.05
MOST_UNSEEN = 2.0  # times the drop that was asked for
_MOST_BLOCKS = 1 << 40


def soak_faults(plan: SoakPlan) -> Iterator[str]:
    """Yield why a node does not follow such a plan."""
    if not 0 < plan.duration_s <= SOAK_LONGEST_S:
        yield "a duration of the soak out of bounds"
    if not SOAK_LEAST_BLOCK_S <= plan.every_s <= SOAK_LONGEST_BLOCK_S:
        yield "a length of its blocks out of bounds"
    if not LEAST_DROP <= plan.drop <= MOST_DROP or not LEAST_DUTY <= plan.duty <= 1.0:
        yield "a drop, or a duty, out of bounds"
    if not 0 <= plan.first < _MOST_BLOCKS:
        yield "a first block out of bounds"


def shortest_s(ops: int, every_s: float, duty: float) -> float:
    """Return the shortest soak that can end with a verdict: enough blocks of each collective, with pairs among them."""
    blocks = LEAST_BLOCKS * ops
    turns = FIRST_TURNS + blocks / (PAIRS_EVERY - 1)
    return _SPARE * (blocks * every_s + turns * SOAK_PAIRS_S / duty)


def too_noisy(soak: Soak) -> Iterator[str]:
    """Yield of which collectives the blocks vary so much that drops far larger than was asked for would not be seen."""
    for series in soak.series:
        least = series.least_drop_percent
        if least is not None and least > MOST_UNSEEN * 100 * soak.drop:
            yield (
                f"the blocks of {series.op} vary so much that a drop of {series.least_drop_s:.0f} s shows only from "
                f"{least:.0f} % on, where {soak.drop:.0%} was asked for"
            )


def too_few(soak: Soak, ops: Sequence[Op]) -> Iterator[str]:
    """Yield of which collectives there are too few blocks: the first ones only tell what is usual."""
    for op in ops:
        blocks = sum(sample.blocks for series in soak.series if series.op == op for sample in series.samples)
        if blocks < LEAST_BLOCKS:
            yield f"{blocks} blocks of {op}"
