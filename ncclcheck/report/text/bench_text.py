"""The benchmark for people: a table per collective with nccl-tests' columns and units, and what to make of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ncclcheck.measure.collectives import COLLECTIVES
from ncclcheck.model.bench import Point, RankFailure, WrongElement
from ncclcheck.model.benchmarks.ceiling import Ceiling, Comparable
from ncclcheck.model.formats.prose import plural
from ncclcheck.model.report import BenchReport, Report, Used
from ncclcheck.model.units import format_number, format_size
from ncclcheck.report.text.fold import fold_hosts
from ncclcheck.report.text.page import Line, Span, line

# Names, units and order as nccl-tests prints them (NVIDIA/nccl-tests src/common.cu, TimeTest and its table header); our
# own three columns come last. Time is the mean over the iterations of the slowest rank's time; "repeat" is where a
# second run should find the bus bandwidth (95 %).
_HEADER = (
    "size",
    "count",
    "type",
    "redop",
    "root",
    "time",
    "algbw",
    "busbw",
    "#wrong",
    "iters",
    "p95",
    "repeat",
)
_UNITS = ("(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "", "", "(us)", "(GB/s)")
# ncclTypeName in src/common.cu; other dtypes keep torch's name.
_TYPES = {
    "float32": "float",
    "float16": "half",
    "float64": "double",
    "float8_e4m3fn": "f8e4m3",
    "float8_e5m2": "f8e5m2",
}
_USED_ALWAYS = ("transports", "network", "interface", "RDMA devices", "sockets", "channels", "algorithms")
_MOST_REFERENCES = 3


def bench_lines(report: Report, verbose: int) -> Iterator[Line]:
    """Every measured point, every rank that spoiled the run, the transport, and the scale to judge it by."""
    bench = report.bench
    if bench is None:
        return
    for failure in bench.failures:
        yield line(Span("failed", "bold red"), f"  {failure_words(failure)}")
    ops = dict.fromkeys(point.op for point in bench.points)
    if not ops and report.soak is None:
        yield line(f"benchmark, {bench_setting(bench)}: no point was measured")
    ceiling_of = {ceiling.op: ceiling for ceiling in bench.ceilings}
    for op in ops:
        yield line(Span(op, "bold"), f", {bench_setting(bench)}")
        points = [point for point in bench.points if point.op == op]
        yield from table(points)
        if op in ceiling_of:
            yield from _ceiling(ceiling_of[op], verbose)
        yield from _remarks(points, verbose)
    yield from _used(bench.used, verbose)
    for link in bench.links:
        yield line(f"link: {link}")
    for comparable in bench.references[: None if verbose else _MOST_REFERENCES]:
        yield line(reference_words(comparable))
    for remark in bench.remarks:
        yield line(remark)


def bench_setting(bench: BenchReport) -> str:
    """Ranks, nodes, backend and transport, each said once."""
    place = f"{plural(bench.world_size, 'rank')} on {plural(bench.nodes, 'node')}"
    if bench.transport.startswith(bench.backend):  # "gloo over TCP on eth0": it says both
        return f"{place}, {bench.transport}"
    return f"{place}, {bench.backend}" + (f" over {bench.transport}" if bench.transport else "")


def table(points: Sequence[Point]) -> Iterator[Line]:
    """Yield the points as right-aligned rows under nccl-tests' column names and units."""
    rows = [_HEADER, _UNITS, *(_row(point) for point in points)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        yield line("  ".join(cells).rstrip(), indent=2, wrap=False)


def _row(point: Point) -> tuple[str, ...]:
    return (
        str(point.size_bytes),
        str(point.count),
        _TYPES.get(point.dtype, point.dtype),
        "sum" if COLLECTIVES[point.op].sums else "none",
        "0" if COLLECTIVES[point.op].has_root else "-1",
        format_number(point.time_us.mean),
        format_number(point.algbw_gb_s),
        format_number(point.busbw_gb_s),
        "N/A" if point.wrong is None else str(point.wrong),
        str(point.iters),
        format_number(point.time_us.p95),
        repeat_words(point),
    )


def repeat_words(point: Point) -> str:
    """Between which bus bandwidths a second run should come out; N/A after too few iterations."""
    low, high = point.busbw_low_gb_s, point.busbw_high_gb_s
    return "N/A" if low is None or high is None else f"{format_number(low)}-{format_number(high)}"


def _ceiling(ceiling: Ceiling, verbose: int) -> Iterator[Line]:
    """Yield `bottleneck 1.0 Gbit/s on eth0: 95 % of it reached`, and what explains a figure above it."""
    yield line(
        f"bottleneck {ceiling.binds}: {ceiling.reached:.0%} of it reached ({format_number(ceiling.busbw_gb_s)} GB/s)",
        indent=2,
    )
    if ceiling.label:
        yield line(ceiling.label, indent=2)
    if verbose and ceiling.limit_gb_s is not None:
        limit = format_number(ceiling.limit_gb_s)
        yield line(f"no algorithm exceeds {limit} GB/s: {ceiling.limited_by}", indent=2)


def _used(used: Sequence[Used], verbose: int) -> Iterator[Line]:
    """Yield what NCCL's own log says it used: the transport always, everything with -v."""
    rows = [entry for entry in used if verbose or entry.what in _USED_ALWAYS or entry.differs]
    if rows:
        by_rank = (
            f"{row.what} {row.value}" + (f" ({fold_hosts(row.hosts)})" if row.hosts else "") for row in rows
        )
        yield line(Span("used, by NCCL's log", "bold"), f": {'; '.join(by_rank)}")


def reference_words(comparable: Comparable) -> str:
    """Describe a published measurement beside ours, with its grade, source and date."""
    row = comparable.reference
    size = format_size(row.size_bytes) if row.size_bytes is not None else "the best of a sweep"
    when = f", {row.date}" if row.date else ""
    note = f"; {row.note}" if row.note else ""
    return (
        f"reference: {row.op} of {size} on {row.nodes} x {row.gpus_per_node} {row.gpu}: "
        f"{format_number(row.busbw_gb_s)} GB/s, here {format_number(comparable.busbw_gb_s)} "
        f"({comparable.busbw_gb_s / row.busbw_gb_s:.0%}); grade {row.grade}, {row.source}{when}{note}"
    )


def _remarks(points: Sequence[Point], verbose: int) -> Iterator[Line]:
    for point in points:
        size = format_size(point.size_bytes)
        if point.first_wrong is not None:
            yield line(f"{size}: {wrong_words(point.first_wrong)}", indent=2)
        if point.unstable:
            yield line(f"{size}: unstable: {point.unstable}", indent=2)
        if verbose:
            times = point.time_us
            p99 = "too few samples" if times.p99 is None else format_number(times.p99)
            yield line(
                f"{size}: first call {format_number(point.first_us)} us; min {format_number(times.min)}, "
                f"p50 {format_number(times.p50)}, p99 {p99}, max {format_number(times.max)} us",
                indent=2,
            )
    if any(point.wrong is None for point in points):
        yield line("#wrong N/A: the data was not verified", indent=2)


def wrong_words(wrong: WrongElement) -> str:
    """Where the first wrong element was, what was there and what should have been."""
    return (
        f"wrong data: rank {wrong.rank}, iteration {wrong.iteration}, element {wrong.offset}: "
        f"got {wrong.got}, expected {wrong.expected}"
    )


def failure_words(failure: RankFailure) -> str:
    """Which rank, where, what became of it and why."""
    detail = f": {failure.detail}" if failure.detail else ""
    after = f", after {failure.waited_s:.1f} s" if failure.waited_s else ""
    return f"rank {failure.rank} on {failure.host} {failure.state} in {failure.where}{after}{detail}"
