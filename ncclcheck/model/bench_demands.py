"""What the user demands of the benchmark: floors of the bus bandwidth, and a baseline that it must not fall behind."""

from __future__ import annotations

import math
import re
from typing import get_args

from msgspec import Struct

from ncclcheck.model.bench import Backend, Op, TimeUs
from ncclcheck.model.benchmarks.site_topology import SiteTopology
from ncclcheck.model.errors import UsageError
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.units import format_number, format_size, parse_size

TOLERANCE = (
    0.05  # of the time; ten H100 nodes of one cluster differed by 0.3 %, and a drift of a few is no fault
)
MOST_FLOORS = 1000
_MOST_GB_S = 100_000.0
# What a person writes, and no more: Python's float also reads 1_0, digits of other scripts, infinity and nan.
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_DIMENSION = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,30}", re.ASCII)
_RIGHT = "write GB/s like 300, all_reduce=300, @1G=300 or all_reduce@1G=300"


class Floor(Struct, frozen=True, forbid_unknown_fields=True):
    """The least bus bandwidth that is good enough. No op: of each; no size: of the largest that was measured.

    `dimension`: of the slowest parallel group of that dimension; "": of all ranks together.
    """

    busbw_gb_s: float
    op: Op | None = None
    size_bytes: int | None = None
    dimension: str = ""

    def __str__(self) -> str:
        """Return the floor as `parse_floor` reads it."""
        size = f"@{format_size(self.size_bytes)}" if self.size_bytes is not None else ""
        place = f"{f'{self.dimension}:' if self.dimension else ''}{self.op or ''}{size}"
        return f"{place}={format_number(self.busbw_gb_s)}" if place else format_number(self.busbw_gb_s)


class BaselinePoint(Struct, frozen=True, forbid_unknown_fields=True):
    """One point of an earlier run. `samples_us`: its iteration times, where the file has them."""

    op: Op
    size_bytes: int
    dtype: str
    iters: int
    busbw_gb_s: float
    time_us: TimeUs
    unstable: str | None = None
    samples_us: tuple[float, ...] = ()


class Baseline(Struct, frozen=True, forbid_unknown_fields=True):
    """An earlier run to be compared with: where it was read, when it was measured, and on what."""

    file: str
    created: str
    backend: Backend
    world_size: int
    nodes: int
    transport: str
    points: tuple[BaselinePoint, ...]


class BenchDemands(Struct, frozen=True, forbid_unknown_fields=True):
    """All of it. `tolerance`: the part by which a point may be slower than in the baseline without being a loss.

    `topology`: what the site says of its switches, which `matrix` is compared with.
    """

    floors: tuple[Floor, ...] = ()
    baseline: Baseline | None = None
    tolerance: float = TOLERANCE
    topology: Fact[SiteTopology] = Missing("absent", "no topology of the site was given or found")


def demands_now(saved: BenchDemands, now: BenchDemands) -> BenchDemands:
    """Return what was demanded of a saved benchmark, where nothing else is demanded now."""
    return BenchDemands(
        floors=now.floors or saved.floors,
        baseline=now.baseline or saved.baseline,
        tolerance=saved.tolerance if now.tolerance == TOLERANCE else now.tolerance,
        topology=saved.topology if isinstance(now.topology, Missing) else now.topology,
    )


def parse_floor(text: str, *, option: str = "--min-busbw") -> Floor:
    """Return the floor that `text` means: `300`, `all_reduce=300`, `@1G=300`, `all_reduce@1G=300`, `dp:@1G=300`.

    An op in any spelling that `--ops` takes too (allreduce, all-reduce), a size as in `--sizes`. Raises UsageError,
    which names `option`, the text and what would be right.
    """
    if "," in text:
        raise UsageError(f"{option} {text!r}: one rule at a time: give {option} again for the next; {_RIGHT}")
    place, equals, number = text.strip().rpartition("=")
    dimension, colon, place = place.rpartition(":")
    name, at, size = place.partition("@")
    try:
        if colon and not _DIMENSION.fullmatch(dimension.strip()):
            raise UsageError(f"{dimension!r} is no dimension of --mesh; {_RIGHT}")
        if equals and not place and not colon:
            raise UsageError(f"nothing stands before the '='; {_RIGHT}")
        return Floor(
            busbw_gb_s=_bandwidth(number),
            op=_op(name.strip()) if name.strip() else None,
            size_bytes=parse_size(size.strip()) if at else None,
            dimension=dimension.strip(),
        )
    except UsageError as error:
        raise UsageError(f"{option} {text!r}: {error}") from None


def _bandwidth(text: str) -> float:
    if not _NUMBER.fullmatch(text.strip()):
        raise UsageError(f"{text.strip()!r} is no bandwidth; {_RIGHT}")
    value = float(text)
    if not (math.isfinite(value) and 0 < value <= _MOST_GB_S):
        raise UsageError(
            f"{text.strip()!r} is out of range: expected GB/s above 0 and at most {_MOST_GB_S:.0f}"
        )
    return value


def _op(name: str) -> Op:
    known: tuple[Op, ...] = get_args(Op)
    plain = name.lower().replace("-", "").replace("_", "")
    for op in known:
        if plain == op.replace("_", ""):
            return op
    raise UsageError(f"{name!r} is no collective; known are {', '.join(known)}")
