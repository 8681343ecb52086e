"""Published measurements of bus bandwidth, as data, and the rows that fit what was measured here.

A row compares with a point only where GPU, GPUs per node, number of nodes, fabric, op and size are the same, and the
rate of the node's cards where both are known. Nothing is interpolated. Rows of grade C and D (read off a slide, a
comment) are shown but not compared with. No row is a floor: the machine's links and its own last good run say more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Literal

from msgspec import Struct

from ncclcheck.model.bench import Op, Point
from ncclcheck.model.benchmarks.ceiling import Fabric, Grade, Reference
from ncclcheck.model.formats.tables import load_table
from ncclcheck.model.units import parse_size

_RATE_SLACK = 0.05  # 400 Gbit/s of one source are 400 of the other


class Hardware(Struct, frozen=True):
    """What was measured on. `gpu` is NVML's name of all of them; `node_gbit_s` is None where it is not known."""

    gpu: str
    gpus_per_node: int
    nodes: int
    fabric: Fabric
    node_gbit_s: float | None = None


class _Machine(Struct, frozen=True, forbid_unknown_fields=True):
    """The key `hardware` of reference.toml."""

    gpu: str
    gpus_per_node: int
    nodes: int
    fabric: Fabric
    nics_per_node: int | None = None
    nic_gbit_s: float | None = None


class _Measured(Struct, frozen=True, forbid_unknown_fields=True):
    """One entry of reference.toml: op -> size -> figure."""

    hardware: _Machine
    busbw_gb_s: dict[Op, dict[str, float]]
    grade: Grade
    source: str
    date: str = ""
    note: str = ""


def fitting(hardware: Hardware, points: Iterable[Point]) -> tuple[tuple[Reference, Point], ...]:
    """Return each row that fits, with the point it speaks of: best grade first, then the row with a date.

    A row without a size is of the best of a sweep, and speaks of the best point of its op.
    """
    measured = list(points)
    found = []
    for row in rows():
        if not _fits(hardware, row):
            continue
        point = _point(row, measured)
        if point is not None:
            found.append((row, point))
    return tuple(sorted(found, key=lambda pair: (pair[0].grade, not pair[0].date)))


@cache
def rows() -> tuple[Reference, ...]:
    """Return the whole table, one record for each figure."""
    table = load_table(
        "ncclcheck.measure", "reference.toml", dict[Literal["measured"], tuple[_Measured, ...]]
    )
    return tuple(row for measured in table["measured"] for row in _figures(measured))


def _figures(measured: _Measured) -> Iterator[Reference]:
    machine = measured.hardware
    for op, figures in measured.busbw_gb_s.items():
        for size, busbw_gb_s in figures.items():
            yield Reference(
                gpu=machine.gpu,
                gpus_per_node=machine.gpus_per_node,
                nodes=machine.nodes,
                fabric=machine.fabric,
                op=op,
                size_bytes=None if size == "best" else parse_size(size),
                busbw_gb_s=busbw_gb_s,
                grade=measured.grade,
                source=measured.source,
                date=measured.date,
                nics_per_node=machine.nics_per_node,
                nic_gbit_s=machine.nic_gbit_s,
                note=measured.note,
            )


def _fits(hardware: Hardware, row: Reference) -> bool:
    same = (row.gpus_per_node, row.nodes, row.fabric) == (
        hardware.gpus_per_node,
        hardware.nodes,
        hardware.fabric,
    )
    return same and is_model(row.gpu, hardware.gpu) and _same_rate(hardware.node_gbit_s, row)


def is_model(model: str, name: str) -> bool:
    """Return True if NVML's name is of that model.

    `H100` is `NVIDIA H100 80GB HBM3` and no `NVIDIA GH100` or `H100 PCIe`.
    A model of several words must have all of them; without PCIe or NVL in the model the name must not have it either.
    """
    words = name.upper().replace("-", " ").split()
    model_words = model.upper().replace("-", " ").split()
    variants = {"PCIE", "NVL"}
    return all(word in words for word in model_words) and not (variants & set(words)) - set(model_words)


def _same_rate(node_gbit_s: float | None, row: Reference) -> bool:
    if node_gbit_s is None or row.nics_per_node is None or row.nic_gbit_s is None:
        return True
    rate = row.nics_per_node * row.nic_gbit_s
    return abs(node_gbit_s - rate) <= _RATE_SLACK * rate


def _point(row: Reference, points: list[Point]) -> Point | None:
    of_op: list[Point] = [point for point in points if point.op == row.op]
    if row.size_bytes is None:
        return max(of_op, key=lambda point: point.busbw_gb_s, default=None)
    return next((point for point in of_op if _nearly(point.size_bytes, row.size_bytes)), None)


def _nearly(size_bytes: int, row_bytes: int) -> bool:
    """Return True if the sizes are equal but for rounding: all_gather uses whole parts of 16 bytes for each rank."""
    return abs(size_bytes - row_bytes) <= row_bytes // 1000
