"""Why a soak has too little data for a verdict."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.measure.soak.soak_limits import LEAST_BLOCKS, too_few, too_noisy
from ncclcheck.model.bench import BenchResult
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.report.text.fold import fold_hosts

_MOST_GAPS = 0.1  # of the series


def soak_not_done(bench: Fact[BenchResult]) -> Iterator[str]:
    """Yield why the verdict is inconclusive: it did not run, was too short, has gaps, or has not ended."""
    if isinstance(bench, Missing) or bench.soak is None:
        why = bench.detail or bench.missing if isinstance(bench, Missing) else "no block was measured"
        yield f"the soak did not run: {why}"
        return
    soak = bench.soak
    if left := interrupted_on(bench):
        yield f"the soak was not finished: {left}"
        return
    if bench.failures:
        return  # a finding, which says more
    if not bench.started:
        yield "the soak did not start"
    elif soak.blocks < LEAST_BLOCKS:
        yield f"the soak is too short to tell: {soak.blocks} blocks, {LEAST_BLOCKS} at least"
    elif few := ", ".join(too_few(soak, bench.plan.ops)):
        yield f"the soak is too short to tell: {few}, {LEAST_BLOCKS} at least"
    yield from too_noisy(soak)
    gaps_s = sum(gap.to_s - gap.from_s for gap in soak.gaps)
    if gaps_s > _MOST_GAPS * soak.seconds:
        yield f"nothing was measured for {gaps_s:.0f} of {soak.seconds:.0f} s, more than 10 %"
    is_wrong = any(event.kind == "wrong" for event in soak.events)
    if bench.unfinished:
        yield f"the soak was not finished: {bench.unfinished}"
    elif not soak.is_finished and not is_wrong:
        yield "the soak has not ended"


def interrupted_on(bench: BenchResult) -> str:
    """Return on which nodes somebody ended ncclcheck, as words; "" for none, or where another failure says more."""
    hosts = [failure.host for failure in bench.failures if failure.is_interrupted]
    is_all = len(hosts) == len(bench.failures)
    return f"ncclcheck was interrupted on {fold_hosts(hosts)}" if hosts and is_all else ""
