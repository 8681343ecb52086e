"""The benchmark for people: a table per collective with nccl-tests' columns and units, and what went wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ncclcheck.model.bench import Point, RankFailure
from ncclcheck.model.report import BenchReport, Report
from ncclcheck.model.units import format_number, format_size
from ncclcheck.report.exit_code import plural
from ncclcheck.report.page import Line, Span, line

# Names and units as nccl-tests prints them (src/common.cu, TimeTest and its table header); time is the mean over the
# iterations of the slowest rank's time.
_HEADER = ("size", "count", "type", "iters", "time", "p95", "algbw", "busbw", "#wrong")
_UNITS = ("(B)", "(elements)", "", "", "(us)", "(us)", "(GB/s)", "(GB/s)", "")


def bench_lines(report: Report, verbose: int) -> Iterator[Line]:
    """Every measured point, and every rank that spoiled the run."""
    bench = report.bench
    if bench is None:
        return
    for failure in bench.failures:
        yield line(Span("failed", "bold red"), f"  {_failure(failure)}")
    ops = dict.fromkeys(point.op for point in bench.points)
    if not ops:
        yield line(f"benchmark, {_setting(bench)}: no point was measured")
    for op in ops:
        yield line(Span(op, "bold"), f", {_setting(bench)}")
        points = [point for point in bench.points if point.op == op]
        yield from table(points)
        yield from _remarks(points, verbose)
    for link in bench.links:
        yield line(f"link: {link}")


def _setting(bench: BenchReport) -> str:
    place = f"{plural(bench.world_size, 'rank')} on {plural(bench.nodes, 'node')}"
    if bench.transport.startswith(bench.backend):  # "gloo over TCP on eth0": it says both
        return f"{place}, {bench.transport}"
    return f"{place}, {bench.backend}" + (f" over {bench.transport}" if bench.transport else "")


def table(points: Sequence[Point]) -> Iterator[Line]:
    """The points as right-aligned rows under nccl-tests' column names and units."""
    rows = [_HEADER, _UNITS, *(_row(point) for point in points)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        yield line("  ".join(cells).rstrip(), indent=2, wrap=False)


def _row(point: Point) -> tuple[str, ...]:
    return (
        str(point.size_bytes),
        str(point.count),
        point.dtype,
        str(point.iters),
        format_number(point.time_us.mean),
        format_number(point.time_us.p95),
        format_number(point.algbw_gb_s),
        format_number(point.busbw_gb_s),
        "N/A" if point.wrong is None else str(point.wrong),
    )


def _remarks(points: Sequence[Point], verbose: int) -> Iterator[Line]:
    for point in points:
        size = format_size(point.size_bytes)
        if point.first_wrong is not None:
            wrong = point.first_wrong
            yield line(
                f"{size}: wrong data: rank {wrong.rank}, iteration {wrong.iteration}, element {wrong.offset}: "
                f"got {wrong.got}, expected {wrong.expected}",
                indent=2,
            )
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


def _failure(failure: RankFailure) -> str:
    detail = f": {failure.detail}" if failure.detail else ""
    after = f", after {failure.waited_s:.1f} s" if failure.waited_s else ""
    return f"rank {failure.rank} on {failure.host} {failure.state} in {failure.where}{after}{detail}"
