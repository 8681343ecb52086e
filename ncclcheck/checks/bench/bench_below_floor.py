"""NC804 bench-below-floor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ncclcheck.checks.bench._ceilings import ceilings
from ncclcheck.checks.bench._mesh_floors import judge_mesh_floor
from ncclcheck.checks.bench._soak_floors import judge_soak_floor
from ncclcheck.checks.measured import bench_of, not_measured, soak_not_measured
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.bench import BenchResult, Op, Point
from ncclcheck.model.bench_demands import Floor
from ncclcheck.model.benchmarks.ceiling import Ceiling
from ncclcheck.model.finding import Evidence, Finding, Fix, NotApplicable, NotKnown
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.model.units import format_number, format_size


@check("NC804", "bench-below-floor", "The bus bandwidth reaches the required floor")
def bench_below_floor(snapshot: Snapshot) -> Iterator[Answer]:
    """Every result reaches its floor (`--min-busbw`, or the policy).

    `300` is for each collective at its largest size, `all_reduce=300` for one of them, `@1G=300` for a size,
    `all_reduce@1G=300` for one point, `dp:all_reduce@1G=300` for the slowest group of a dimension of `--mesh`. There is
    no hidden tolerance and no mean over sizes. A floor above the limit of any algorithm on these links is rejected as
    impossible. Of a soak it is the median of the series.

    ## Why it matters
    A mean over sizes hides a slowdown at one size, and a floor that always passes or always fails has no value.

    ## How to fix
    The message names the bottleneck link and the share of it that was reached. If the share is low, see the other
    findings: the transport that was used, a slow rank, a link that is slower than the others.

    ## Source
    Bus bandwidth as nccl-tests defines it (doc/PERFORMANCE.md, and GetBw of each collective). Limits:
    ncclcheck/measure/op_ceiling.py.
    """
    for floor in snapshot.bench_demands.floors:
        if floor.dimension:
            yield from judge_mesh_floor(snapshot, floor)
    floors = [floor for floor in snapshot.bench_demands.floors if not floor.dimension]
    if not floors and not snapshot.bench_demands.floors:
        yield NotApplicable("no floor was given (--min-busbw)")
        return
    bench = bench_of(snapshot)
    if bench is not None and bench.world_size == 1:
        yield NotKnown("one rank: no data crosses a link, so there is no bus bandwidth")
    elif bench is not None and bench.soak is not None:
        for floor in floors:
            yield from judge_soak_floor(bench, bench.soak, floor)
        yield from soak_not_measured(snapshot)
        return
    elif bench is not None:
        known = {ceiling.op: ceiling for ceiling in ceilings(snapshot, bench).ceilings}
        for floor in floors:
            yield from _judged(bench, floor, known)
    yield from not_measured(snapshot, points=True)


def points_of(bench: BenchResult, floor: Floor) -> tuple[Point, ...]:
    """The points that the floor speaks of: of its op or each, of its size or the largest that was planned.

    A size is the one that was asked for; that of the point may be cut down to whole elements for every rank.
    """
    sizes = bench.plan.sizes_bytes
    size = floor.size_bytes if floor.size_bytes is not None else max(sizes, default=0)
    found = []
    for op in bench.plan.ops if floor.op is None else (floor.op,):
        measured = [point for point in bench.points if point.op == op]
        found += [
            point
            for number, point in enumerate(measured)
            if point.size_bytes == size or (number < len(sizes) and sizes[number] == size)
        ]
    return tuple(found)


def _judged(bench: BenchResult, floor: Floor, known: Mapping[Op, Ceiling]) -> Iterator[Answer]:
    points = points_of(bench, floor)
    ops = bench.plan.ops if floor.op is None else (floor.op,)
    unmeasured = [op for op in ops if op not in {point.op for point in points}]
    if unmeasured:
        size = "" if floor.size_bytes is None else f" at {format_size(floor.size_bytes)}"
        yield NotKnown(
            f"the floor {floor} matches nothing that was measured: no {', '.join(unmeasured)}{size}"
        )
    missed = []
    for point in points:
        ceiling = known.get(point.op)
        best_gb_s = max(measured.busbw_gb_s for measured in bench.points if measured.op == point.op)
        limit_gb_s = None if ceiling is None else ceiling.limit_gb_s
        if (
            ceiling is not None
            and limit_gb_s is not None
            and floor.busbw_gb_s > max(limit_gb_s, best_gb_s)  # what was measured is not impossible
        ):
            yield _impossible(floor, point, ceiling)
        elif point.busbw_gb_s < floor.busbw_gb_s:
            missed.append(point)
    if missed:
        yield _missed(floor, missed, known)


def _impossible(floor: Floor, point: Point, ceiling: Ceiling) -> Finding:
    limit = format_number(ceiling.limit_gb_s or 0.0)
    return Finding(
        "error",
        f"the floor {floor} is rejected as impossible: no algorithm gets {point.op} above {limit} GB/s here "
        f"({ceiling.limited_by}); it was measured at {format_number(point.busbw_gb_s)} GB/s",
        (),
        (_evidence(point, f"a floor of at most {limit} GB/s"),),
        (
            Fix(
                f"set a floor that these links can reach: at most {limit} GB/s, usually {_usual(ceiling)} GB/s"
            ),
        ),
    )


def _usual(ceiling: Ceiling) -> str:
    return format_number(0.85 * ceiling.busbw_gb_s)


def _missed(floor: Floor, points: Sequence[Point], known: Mapping[Op, Ceiling]) -> Finding:
    worst = min(points, key=lambda point: point.busbw_gb_s)
    listing = ", ".join(
        f"{point.op} of {format_size(point.size_bytes)} {format_number(point.busbw_gb_s)}" for point in points
    )
    ceiling = known.get(worst.op)
    scale = ""
    if ceiling is not None:
        above = floor.busbw_gb_s > ceiling.busbw_gb_s
        beyond = ", so no setting is likely to reach the floor" if above else ""
        scale = (
            f"; the bottleneck is {ceiling.binds}, which allows "
            f"{format_number(ceiling.busbw_gb_s)} GB/s{beyond}"
        )
    return Finding(
        "error",
        f"below the floor {floor}: {listing} GB/s ({worst.busbw_gb_s / floor.busbw_gb_s:.0%} of it){scale}",
        (),
        tuple(_evidence(point, f"at least {format_number(floor.busbw_gb_s)} GB/s") for point in points),
        (
            Fix(
                "check the transport that was used and the findings about network and ranks; "
                "measure again without other load, and with fewer nodes at a time, to find the slow node",
                ("ncclcheck run -v",),
            ),
        ),
    )


def _evidence(point: Point, expected: str) -> Evidence:
    return Evidence(
        (),
        f"bus bandwidth of {point.op}, {point.size_bytes} bytes",
        f"{format_number(point.busbw_gb_s)} GB/s",
        expected,
        f"{point.iters} iterations, each as long as its slowest rank took",
    )
