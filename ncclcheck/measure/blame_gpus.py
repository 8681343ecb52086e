"""Which GPUs are slower than the others of the same model, when all of them did the same work at the same time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Literal, TypeAlias

from msgspec import Struct

from ncclcheck.measure.links.leave_one_out import LeaveOneOut
from ncclcheck.model.bench import GpuHealth, GpuSpeed, Point

# Where they come from: docs/measurements.md, "When a GPU counts as slow".
CLOCK_LOSS = 0.07
COMPUTE_LOSS = 0.20  # at a clock that is not lower
MEMORY_LOSS = 0.20
PCIE_LOSS = 0.40
LOSS_OF_TWO = 1.5  # times these: of two it is not known what is usual
_OUTLIER = 5.0  # robust standard deviations from the median of the others
_LEAST_SPREAD = 0.01  # of that median

_CLOCK = "clock"

SlowPart: TypeAlias = Literal["throttled", "slow memory", "slow PCIe"]


class SlowGpu(Struct, frozen=True):
    """A GPU that is far slower than the others: in what, its value, and the others' median."""

    rank: int
    host: str
    part: SlowPart
    measured: str  # "clock", "multiplication" ...
    unit: str
    value: float
    usual: float
    health: GpuHealth = GpuHealth()


class _Measure(Struct, frozen=True):
    part: SlowPart
    name: str
    unit: str
    loss: float
    value: Callable[[GpuSpeed], float]


_MEASURES = (
    _Measure("throttled", _CLOCK, "MHz", CLOCK_LOSS, lambda gpu: gpu.clock_mhz),
    _Measure("throttled", "multiplication", "TFLOP/s", COMPUTE_LOSS, lambda gpu: gpu.compute_tflop_s),
    _Measure("slow memory", "copy within its memory", "GB/s", MEMORY_LOSS, lambda gpu: gpu.device_gb_s),
    _Measure("slow PCIe", "copy from its host", "GB/s", PCIE_LOSS, lambda gpu: gpu.host_gb_s),
)


def slow_gpus(gpus: Sequence[GpuSpeed], points: Sequence[Point] = ()) -> tuple[SlowGpu, ...]:
    """Return the GPUs that are far slower than the others of their model, each with the parts that are slow.

    Slow: a clock 7 % below the others' median, a multiplication or a copy within memory 20 %, a copy from the host
    40 %; and more than 5 robust standard deviations (1.4826 MAD) below. Of two GPUs half as much again. A low clock
    counts where the multiplication is slower, too, and explains a slow memory. Without what was measured after the
    collectives, the clocks are those of the points.
    """
    measured = tuple(gpus) or _clocks_of(points)
    found: dict[tuple[int, SlowPart], SlowGpu] = {}
    for model in dict.fromkeys(gpu.model for gpu in measured):
        alike = [gpu for gpu in measured if gpu.model == model]
        for measure in _MEASURES:
            for slow in _below(measure, alike):
                found.setdefault((slow.rank, slow.part), slow)
    for slow in [slow for slow in found.values() if slow.measured == _CLOCK and not _shows(slow, measured)]:
        del found[slow.rank, slow.part]
    throttled = {rank for rank, part in found if part == "throttled"}
    named = (slow for slow in found.values() if slow.part != "slow memory" or slow.rank not in throttled)
    return tuple(sorted(named, key=lambda slow: slow.rank))


def _shows(slow: SlowGpu, gpus: Sequence[GpuSpeed]) -> bool:
    """Return whether its multiplication lost half as much as its clock, at least; True where that is not known.

    A spin that another program interrupts looks like a low clock, too.
    """
    slow_gpu = next(gpu for gpu in gpus if gpu.rank == slow.rank)
    others = [
        gpu.compute_tflop_s
        for gpu in gpus
        if gpu.model == slow_gpu.model and gpu.rank != slow_gpu.rank and gpu.compute_tflop_s > 0
    ]
    if not others or slow_gpu.compute_tflop_s <= 0:
        return True
    return 1 - slow_gpu.compute_tflop_s / median(others) > (1 - slow.value / slow.usual) / 2


def _below(measure: _Measure, gpus: Sequence[GpuSpeed]) -> list[SlowGpu]:
    known = [gpu for gpu in gpus if measure.value(gpu) > 0]
    others = LeaveOneOut(map(measure.value, known))
    loss = measure.loss * (LOSS_OF_TWO if len(others) == 1 else 1.0)
    slow = []
    for gpu in known if len(others) else ():
        value = measure.value(gpu)
        usual = others.median(value)
        spread = others.spread(value, _LEAST_SPREAD * usual)
        if value < (1 - loss) * usual and usual - value > _OUTLIER * spread:
            slow.append(
                SlowGpu(
                    gpu.rank, gpu.host, measure.part, measure.name, measure.unit, value, usual, gpu.health
                )
            )
    return slow


def _clocks_of(points: Sequence[Point]) -> tuple[GpuSpeed, ...]:
    """Return the typical clock of each rank's GPU in the collectives."""
    clocks: dict[tuple[int, str], list[float]] = {}
    for point in points:
        for rank in point.ranks:
            if rank.clock_mhz:
                clocks.setdefault((rank.rank, rank.host), []).append(rank.clock_mhz)
    medians: Mapping[tuple[int, str], float] = {place: median(found) for place, found in clocks.items()}
    return tuple(GpuSpeed(*place, "", clock, 0.0, 0.0, 0.0) for place, clock in medians.items())
