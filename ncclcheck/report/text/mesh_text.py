"""The placement of the job's parallel groups, as a table."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.model.report import Report
from ncclcheck.report.text.page import Line, Span, line
from ncclcheck.report.text.plain import plain

_HEADER = ("dimension", "ranks", "groups", "nodes spanned", "least possible")


def mesh_lines(report: Report) -> Iterator[Line]:
    """Yield a line per dimension: how many groups of how many ranks, and how many nodes they span."""
    mesh = report.mesh
    if mesh is None:
        return
    yield line(Span("parallel groups", "bold"), f": {plain(mesh.order)} (from {plain(mesh.source)})")
    rows: list[tuple[str, ...]] = [_HEADER]
    for dimension in mesh.dimensions:
        numbers = (dimension.size, dimension.groups, dimension.nodes_spanned, dimension.least_nodes)
        rows.append((plain(dimension.name), *map(str, numbers)))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            row[0].ljust(widths[0]),
            *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)),
        ]
        yield line("  ".join(cells).rstrip(), indent=2, wrap=False)
