"""The heat map of `matrix`: what each node sends to each other one, in the order of the leaves.

Of up to 64 nodes each path is a cell with words. Of more it is a picture with a point for each path, and the cells are
what each leaf sends to each other one.
"""

from __future__ import annotations

import colorsys
import math
from collections import defaultdict
from statistics import median

from msgspec import Struct

from ncclcheck.model.benchmarks.matrix import FabricMatrix
from ncclcheck.report.html.pixels import png_address
from ncclcheck.report.matrix.matrix_text import MOST_MAPPED, leaf_order
from ncclcheck.report.text.plain import plain

NAME_WIDTH, CELL = 170, 12
MOST_POINTS = (
    1024  # of a side of the picture; of more nodes several share a point, which shows the slowest path
)
_NAME_LENGTH = 20
_RED, _GREEN = 0, 130  # hues of nothing and of the usual rate
_SATURATION, _LIGHTNESS = 0.6, 0.5
_STEPS = 20  # colours from nothing to the usual rate
_NOT_MEASURED, _NOT_FINISHED, _FIRST = 0, 1, 2  # numbers of the palette
_GREY, _BLACK = (232, 232, 232), (0, 0, 0)


class HeatCell(Struct, frozen=True):
    """A path: where it is drawn, its colour, and what is said of it."""

    x: int
    y: int
    fill: str
    title: str


class HeatMap(Struct, frozen=True):
    """The map: its size, the names of the rows with their places, and its cells."""

    width: int
    height: int
    names: tuple[tuple[int, str], ...]
    cells: tuple[HeatCell, ...]


class PointMap(Struct, frozen=True):
    """The picture: its address, its side in points, and how many nodes share a point."""

    address: str
    side: int
    nodes_per_point: int


def heat_map(matrix: FabricMatrix | None) -> HeatMap | None:
    """Return the map of the nodes, or of the leaves of many nodes; None without a matrix, or with too many leaves."""
    hosts = leaf_order(matrix) if matrix is not None else []
    if matrix is None or len(hosts) < 2:  # noqa: PLR2004 (a path has two ends)
        return None
    if len(hosts) > MOST_MAPPED:
        return _leaf_map(matrix)
    place = {host: number for number, host in enumerate(hosts)}
    cells = tuple(
        _cell(
            (place[cell.from_host], place[cell.to_host]),
            _fill(cell.gbit_s, matrix.reference_gbit_s),
            f"{plain(cell.from_host)} to {plain(cell.to_host)}: {_rate(cell.gbit_s)}",
        )
        for cell in matrix.cells
    )
    return _map(hosts, cells)


def _leaf_map(matrix: FabricMatrix) -> HeatMap | None:
    """Return what each leaf sends to each other one, and within itself: the median of its paths."""
    if not 1 < len(matrix.leaves) <= MOST_MAPPED:
        return None
    number_of = {host: number for number, leaf in enumerate(matrix.leaves) for host in leaf}
    rates: defaultdict[tuple[int, int], list[float]] = defaultdict(list)
    for cell in matrix.cells:
        if cell.from_host in number_of and cell.to_host in number_of:
            rates[number_of[cell.from_host], number_of[cell.to_host]].append(cell.gbit_s or 0.0)
    names = list(matrix.named_leaves)
    cells = tuple(
        _cell(
            (source, target),
            _fill(median(path_rates), matrix.reference_gbit_s),
            f"{names[source]} to {names[target]}: {_rate(median(path_rates))}, the slowest of {len(path_rates)} paths "
            f"{_rate(min(path_rates))}",
        )
        for (source, target), path_rates in sorted(rates.items())
    )
    return _map(names, cells)


def point_map(matrix: FabricMatrix | None) -> PointMap | None:
    """Return the picture of the paths of many nodes; None where each has a cell of its own."""
    hosts = leaf_order(matrix) if matrix is not None else []
    if matrix is None or len(hosts) <= MOST_MAPPED:
        return None
    shared = math.ceil(len(hosts) / MOST_POINTS)
    side = math.ceil(len(hosts) / shared)
    place = {host: number // shared for number, host in enumerate(hosts)}
    rows = [bytearray(side) for _ in range(side)]
    for cell in matrix.cells:
        row, column = rows[place[cell.from_host]], place[cell.to_host]
        shown = _step(cell.gbit_s, matrix.reference_gbit_s)
        row[column] = shown if row[column] == _NOT_MEASURED else min(row[column], shown)
    palette = [_GREY, _BLACK, *(_colour(step / _STEPS) for step in range(_STEPS + 1))]
    return PointMap(png_address([bytes(row) for row in rows], palette), side, shared)


def _map(names: list[str], cells: tuple[HeatCell, ...]) -> HeatMap:
    return HeatMap(
        NAME_WIDTH + CELL * len(names),
        CELL * len(names),
        tuple((CELL * number + CELL - 2, plain(name)[:_NAME_LENGTH]) for number, name in enumerate(names)),
        cells,
    )


def _cell(place: tuple[int, int], fill: str, title: str) -> HeatCell:
    return HeatCell(NAME_WIDTH + CELL * place[1], CELL * place[0], fill, title)


def _rate(rate_gbit_s: float | None) -> str:
    return "did not finish" if rate_gbit_s is None else f"{rate_gbit_s:.3g} Gbit/s"


def _fill(rate_gbit_s: float | None, reference_gbit_s: float) -> str:
    if rate_gbit_s is None:
        return "black"
    if not reference_gbit_s:
        return "grey"
    part = min(1.0, rate_gbit_s / reference_gbit_s)
    return f"hsl({round(_RED + (_GREEN - _RED) * part)} {_SATURATION:.0%} {_LIGHTNESS:.0%})"


def _step(rate_gbit_s: float | None, reference_gbit_s: float) -> int:
    """Return the number of the palette."""
    if rate_gbit_s is None or not reference_gbit_s:
        return _NOT_FINISHED
    return _FIRST + round(_STEPS * min(1.0, rate_gbit_s / reference_gbit_s))


def _colour(part: float) -> tuple[int, int, int]:
    hue = (_RED + (_GREEN - _RED) * part) / 360
    red, green, blue = colorsys.hls_to_rgb(hue, _LIGHTNESS, _SATURATION)
    return round(255 * red), round(255 * green), round(255 * blue)
