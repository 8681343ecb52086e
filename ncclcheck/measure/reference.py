"""Published measurements of bus bandwidth, as data, and the rows that fit what was measured here.

A row compares with a point only where GPU, GPUs per node, number of nodes, fabric, op and size are the same, and the
rate of the node's cards where both are known. Nothing is interpolated. Rows of grade C and D (read off a slide, a
comment) are shown but not compared with. No row is a floor: the machine's links and its own last good run say more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache

from msgspec import Struct, convert

from ncclcheck.measure.reference_rows import TABLE
from ncclcheck.model.bench import Point
from ncclcheck.model.ceiling import Fabric, Reference
from ncclcheck.model.units import parse_size

_RATE_SLACK = 0.05  # 400 Gbit/s of one source are 400 of the other


class Hardware(Struct, frozen=True):
    """What was measured on. `gpu` is NVML's name of all of them; `node_gbit_s` is None where it is not known."""

    gpu: str
    gpus_per_node: int
    nodes: int
    fabric: Fabric
    node_gbit_s: float | None = None


def fitting(hardware: Hardware, points: Iterable[Point]) -> tuple[tuple[Reference, Point], ...]:
    """Each row that fits, with the point it speaks of: best grade first, then the row with a date.

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
    """The whole table."""
    lines = [line for line in TABLE.splitlines() if line]
    triples = zip(lines[::3], lines[1::3], lines[2::3], strict=True)
    return tuple(row for head, values, tail in triples for row in _rows(head, values, tail))


def _rows(head: str, values: str, tail: str) -> Iterator[Reference]:
    gpu, per_node, nodes, fabric, grade, cards, date = (cell.strip() for cell in head.split(" | "))
    source, note = (cell.strip() for cell in tail.split(" | "))
    count, _, rate = cards.partition("x")
    for each in values.split("; "):
        op, *sizes = each.split()
        for size, _, busbw in (one.partition("=") for one in sizes):
            yield convert(
                {
                    "gpu": gpu,
                    "gpus_per_node": int(per_node),
                    "nodes": int(nodes),
                    "fabric": fabric,
                    "op": op,
                    "size_bytes": None if size == "best" else parse_size(size),
                    "busbw_gb_s": float(busbw),
                    "grade": grade,
                    "source": source,
                    "date": "" if date == "-" else date,
                    "nics_per_node": int(count) if rate else None,
                    "nic_gbit_s": float(rate) if rate else None,
                    "note": "" if note == "-" else note,
                },
                Reference,
            )


def _fits(hardware: Hardware, row: Reference) -> bool:
    same = (row.gpus_per_node, row.nodes, row.fabric) == (
        hardware.gpus_per_node,
        hardware.nodes,
        hardware.fabric,
    )
    return same and is_model(row.gpu, hardware.gpu) and _same_rate(hardware.node_gbit_s, row)


def is_model(model: str, name: str) -> bool:
    """True if NVML's name is of that model: `H100` is `NVIDIA H100 80GB HBM3` and no `NVIDIA GH100` or `H100 PCIe`.

    A model of several words must have all of them; without PCIe or NVL in the model the name must not have it either.
    """
    words = name.upper().replace("-", " ").split()
    wanted = model.upper().replace("-", " ").split()
    variants = {"PCIE", "NVL"}
    return all(word in words for word in wanted) and not (variants & set(words)) - set(wanted)


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


def _nearly(size_bytes: int, other: int) -> bool:
    """The size of an all_gather is cut down to whole parts of 16 bytes for each rank."""
    return abs(size_bytes - other) <= other // 1000
