"""The heat map of `matrix`: what each node sends to each other one, in the order of the leaves."""

from __future__ import annotations

from msgspec import Struct

from ncclcheck.model.benchmarks.matrix import FabricMatrix
from ncclcheck.report.matrix.matrix_text import MOST_MAPPED, leaf_order
from ncclcheck.report.text.plain import plain

NAME_WIDTH, CELL = 170, 12
_NAME_LENGTH = 20
_RED, _GREEN = 0, 130  # hues of nothing and of the usual rate


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


def heat_map(matrix: FabricMatrix | None) -> HeatMap | None:
    """Return the map; None without a matrix, or with too many nodes for one."""
    hosts = leaf_order(matrix) if matrix is not None else []
    if matrix is None or not 1 < len(hosts) <= MOST_MAPPED:
        return None
    place = {host: number for number, host in enumerate(hosts)}
    cells = tuple(
        HeatCell(
            NAME_WIDTH + CELL * place[cell.to_host],
            CELL * place[cell.from_host],
            _fill(cell.rate_gbit_s, matrix.reference_gbit_s),
            f"{plain(cell.from_host)} to {plain(cell.to_host)}: "
            + ("did not finish" if cell.rate_gbit_s is None else f"{cell.rate_gbit_s:.3g} Gbit/s"),
        )
        for cell in matrix.cells
    )
    return HeatMap(
        NAME_WIDTH + CELL * len(hosts),
        CELL * len(hosts),
        tuple((CELL * number + CELL - 2, plain(host)[:_NAME_LENGTH]) for host, number in place.items()),
        cells,
    )


def _fill(rate_gbit_s: float | None, reference_gbit_s: float) -> str:
    if rate_gbit_s is None:
        return "black"
    if not reference_gbit_s:
        return "grey"
    part = min(1.0, rate_gbit_s / reference_gbit_s)
    return f"hsl({round(_RED + (_GREEN - _RED) * part)} 60% 50%)"
