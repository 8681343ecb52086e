"""What was measured in the job's parallel groups, as tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ncclcheck.model.benchmarks.mesh_bench import GroupTime, MeshPoint, Mix
from ncclcheck.model.report import MeshReport, Report
from ncclcheck.model.units import format_number, format_size
from ncclcheck.report.text.fold import fold_hosts, fold_numbers
from ncclcheck.report.text.page import Line, Span, line
from ncclcheck.report.text.plain import plain

_HEADER = ("dimension", "op", "size", "groups", "slowest", "median", "fastest", "busbw", "alone", "together", "#wrong",
           "the slowest group")  # fmt: skip
_UNITS = ("", "", "(B)", "", "(us)", "(us)", "(us)", "(GB/s)", "(us)", "/ alone", "", "")
_LEFT = (0, 1, len(_HEADER) - 1)  # columns of words


def group_lines(report: Report) -> Iterator[Line]:
    """Yield a line per call: all groups of its dimension at once; then the mix, and a step of the model."""
    bench = report.bench
    mesh = None if bench is None else bench.mesh
    if bench is None or mesh is None:
        return
    yield line(Span("in the groups", "bold"), f" of {plain(mesh.order)}, all groups of a dimension at once")
    measured = [point for point in mesh.points if point.groups]
    yield from _table([_HEADER, _UNITS, *map(_row, measured)])
    for point in mesh.points:
        if point.unsupported:
            yield line(
                f"{point.op} in {plain(point.dimension)}: not measured: {plain(point.unsupported)}", indent=2
            )
        yield from _slow(point)
    if mesh.mix is not None:
        yield from _mix(mesh.mix)
    yield from _step(mesh)


def group_words(time: GroupTime) -> str:
    """Return its number, ranks and hosts: "group 1: ranks 4-7 on node[3-4]"."""
    return f"group {time.group}: ranks {fold_numbers(time.ranks)} on {fold_hosts(time.hosts)}"


def _row(point: MeshPoint) -> tuple[str, ...]:
    slowest = point.groups[0]
    return (
        plain(point.dimension),
        point.op,
        str(point.size_bytes),
        f"{point.group_count} x {point.group_size}",
        format_number(slowest.time_us),
        format_number(point.median_us),
        format_number(point.fastest_us),
        format_number(slowest.busbw_gb_s),
        "N/A" if point.alone_us is None else format_number(point.alone_us),
        "N/A" if point.contention is None else f"{point.contention:.2f}",
        "N/A" if point.wrong is None else str(point.wrong),
        group_words(slowest),
    )


def _slow(point: MeshPoint) -> Iterator[Line]:
    for slow in point.slow:
        size, usual = format_size(point.size_bytes), format_number(slow.usual_us)
        yield line(
            f"{point.op} of {size} in {plain(point.dimension)}: {group_words(slow.time)} takes "
            f"{format_number(slow.time.time_us)} us, where {usual} us is usual",
            indent=2,
        )


def _mix(mix: Mix) -> Iterator[Line]:
    shares = ", ".join(f"{plain(share.dimension)} {share.share:.0%}" for share in mix.shares)
    yield line(
        Span("mix", "bold"),
        f" of {len(mix.calls)} calls in one order on every rank, {mix.rounds} rounds: one after the other "
        f"{format_number(mix.serial_us)} us ({shares}), all at once {format_number(mix.overlapped_us)} us: "
        f"{mix.gain:.2f} times as fast" + (f"; {mix.wrong} elements were wrong" if mix.wrong else ""),
    )


def _step(mesh: MeshReport) -> Iterator[Line]:
    if mesh.step is None:
        return
    step = mesh.step
    what = ": its communication takes"
    if step.not_counted:
        missing = " and ".join(map(plain, step.not_counted))
        what = f": of its communication, without that in {missing}, which was not measured,"
    yield line(
        Span("step", "bold"),
        f"{what} {format_number(step.seconds)} s ({format_number(step.low_s)} to "
        f"{format_number(step.high_s)} s) for one micro batch, if nothing of it is hidden:",
    )
    for point in sorted(
        (point for point in mesh.points if point.groups),
        key=lambda point: -point.per_step * point.groups[0].time_us,
    ):
        part_s = point.per_step * point.groups[0].time_us / 1e6
        yield line(
            f"{format_number(part_s)} s: {point.per_step} x {point.op} of {format_size(point.size_bytes)} in "
            f"{plain(point.dimension)} ({plain(point.what)})",
            indent=2,
        )


def _table(rows: Sequence[Sequence[str]]) -> Iterator[Line]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            cell.ljust(width) if number in _LEFT else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield line("  ".join(cells).rstrip(), indent=2, wrap=False)
