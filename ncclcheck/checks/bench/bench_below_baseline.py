"""NC805 bench-below-baseline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from ncclcheck.checks.measured import bench_of, not_measured
from ncclcheck.checks.registry import Answer, check
from ncclcheck.measure.baseline import Compared, compare
from ncclcheck.model.bench import BenchResult, Op
from ncclcheck.model.bench_demands import Baseline, BenchDemands
from ncclcheck.model.finding import Evidence, Finding, Fix, NotApplicable, NotKnown
from ncclcheck.model.formats.prose import listed
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.model.units import format_number, format_size


@check("NC805", "bench-below-baseline", "The collectives are as fast as in the baseline")
def bench_below_baseline(snapshot: Snapshot) -> Iterator[Answer]:
    """No result is significantly slower than in the run of `--baseline`, beyond `--tolerance`.

    Each op and size is judged on its own. Significance comes from the spread of the iterations in both runs and from
    the scatter of the results; fewer than one in a hundred healthy runs raises a false alarm. A result without a
    counterpart in the baseline, or measured under other conditions, is unknown, never passed.

    ## Why it matters
    A machine's own last good run is the best reference: a table does not know its cables. A slowdown at one size (a
    new library that chooses another algorithm there) does not show in a mean.

    ## How to fix
    Compare the two reports (`ncclcheck report compare OLD NEW`): versions, environment, transport. A slowdown at some
    sizes points to the algorithm or protocol, one at all sizes to a link, a card or a busy node.

    ## Source
    ncclcheck/measure/baseline.py: medians, their intervals by order statistics, Bonferroni over the points.
    """
    demands = snapshot.bench_demands
    if demands.baseline is None:
        yield NotApplicable("no --baseline was given")
        return
    bench = bench_of(snapshot)
    if bench is not None and bench.points:
        yield from _judged(bench, demands.baseline, demands)
    yield from not_measured(snapshot, points=True)


def _judged(bench: BenchResult, baseline: Baseline, demands: BenchDemands) -> Iterator[Answer]:
    if conditions := _other_conditions(bench, baseline):
        yield NotKnown(f"{baseline.file} was measured with {conditions}: the results cannot be compared")
        return
    before = {(point.op, point.size_bytes, point.dtype): point for point in baseline.points}
    pairs = [
        (now, before[key]) for now in bench.points if (key := (now.op, now.size_bytes, now.dtype)) in before
    ]
    missing = [now for now in bench.points if (now.op, now.size_bytes, now.dtype) not in before]
    if missing:
        listing = listed(
            (f"{now.op} of {format_size(now.size_bytes)} {now.dtype}" for now in missing), _LISTED
        )
        yield NotKnown(f"{baseline.file} does not have {listing}")
    found = compare(pairs, demands.tolerance, bench.backend)
    losses = [compared for compared in found if compared.verdict == "loss"]
    for op in dict.fromkeys(loss.now.op for loss in losses):
        of_op = [loss for loss in losses if loss.now.op == op]
        finding = _finding(op, of_op, found, baseline, demands.tolerance)
        yield replace(finding, evidence=(*finding.evidence, *_transport(bench, baseline)))
    unsure = [compared for compared in found if compared.verdict == "not-known"]
    if unsure:
        listing = "; ".join(
            f"{compared.now.op} of {format_size(compared.now.size_bytes)}: {compared.why}"
            for compared in unsure[:_SPELT]
        )
        more = f"; and {len(unsure) - _SPELT} more" if len(unsure) > _SPELT else ""
        yield NotKnown(f"{len(unsure)} of {len(found)} points cannot be compared: {listing}{more}")


_LISTED, _SPELT = 4, 2


def _other_conditions(bench: BenchResult, baseline: Baseline) -> str:
    """What was different when the baseline was measured; empty where the two can be compared."""
    pairs = (
        ("backend", baseline.backend, bench.backend),
        ("ranks", baseline.world_size, bench.world_size),
        ("nodes", baseline.nodes, bench.nodes),
    )
    return ", ".join(f"{old} {name} (now {new})" for name, old, new in pairs if old != new)


def _finding(
    op: Op, losses: Sequence[Compared], found: Sequence[Compared], baseline: Baseline, tolerance: float
) -> Finding:
    judged = sum(compared.now.op == op for compared in found)
    worst_first = (
        f"{format_size(compared.now.size_bytes)} lost {compared.lost:.0%} "
        f"({format_number(compared.before.busbw_gb_s)} to {format_number(compared.now.busbw_gb_s)} GB/s)"
        for compared in sorted(losses, key=lambda loss: -loss.lost)
    )
    listing = listed(worst_first, _LISTED)
    when = f" of {baseline.created}" if baseline.created else ""
    return Finding(
        "error",
        f"{op} is slower than in the baseline {baseline.file}{when} at {len(losses)} of {judged} sizes: "
        f"{listing}; {tolerance:.0%} is tolerated",
        (),
        tuple(_evidence(loss) for loss in losses),
        (
            Fix(
                "compare the versions, environment and transport of the two reports; find the node "
                "or link that is slow now",
                ("ncclcheck report compare OLD NEW", "ncclcheck preflight -v"),
            ),
        ),
    )


def _transport(bench: BenchResult, baseline: Baseline) -> Iterator[Evidence]:
    """Another transport than then is the likely cause."""
    if baseline.transport and bench.transport and baseline.transport != bench.transport:
        yield Evidence((), "transport", bench.transport, baseline.transport, "the baseline")


def _evidence(compared: Compared) -> Evidence:
    return Evidence(
        (),
        f"typical time of {compared.now.op}, {compared.now.size_bytes} bytes",
        f"{format_number(compared.now.time_us.p50)} us over {compared.now.iters} iterations",
        f"{format_number(compared.before.time_us.p50)} us; "
        f"noise explains a loss of at most {max(compared.noise, 0.001):.1%}",
        "the baseline",
    )
