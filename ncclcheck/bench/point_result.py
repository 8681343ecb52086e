"""The figures of a point, from what all ranks reported of its batches."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, median

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.bench.agreement import BatchReport
from ncclcheck.bench.task import WorkerTask
from ncclcheck.measure.busbw import Sizing, algbw_gb_s
from ncclcheck.measure.collectives import Collective
from ncclcheck.measure.iterations import iteration_times_us
from ncclcheck.measure.lateness import RankSamples, SampleBlock, rank_times
from ncclcheck.measure.samples import kept_samples
from ncclcheck.measure.statistics import mean_interval, time_us
from ncclcheck.model.bench import Point, RankTime, WrongElement


class Batch(Struct, frozen=True):
    """The ranks' reports of one batch. `loop`: its calls were timed together, and only their mean is known."""

    reports: list[BatchReport]
    loop: bool = False

    @property
    def launch_bound(self) -> bool:
        """A GPU waited for its host, and the others for it."""
        return any(report.launch_bound for report in self.reports)


class PointOf(Struct, frozen=True):
    """Which point it is, and how long its first call took."""

    task: WorkerTask
    collective: Collective
    sizing: Sizing
    first_us: float


def times_us(reports: Sequence[BatchReport]) -> list[float]:
    """Return the time of each iteration of a batch; the clocks began with the lead-in, which all entered together."""
    return iteration_times_us([[report.lead_in_us, *report.durations_us] for report in reports])[1:]


def precision_samples_us(batches: Sequence[Batch]) -> list[float]:
    """Return the times of the iterations that were timed one by one: how much they scatter ends the point."""
    return [us for batch in batches if not batch.loop for us in times_us(batch.reports)]


def result_of(point: PointOf, batches: Sequence[Batch], unstable: str | None) -> Point:
    """Return the point. Batches in which a GPU waited for its host count only where there are no others."""
    loops = _usable([batch for batch in batches if batch.loop])
    singles = _usable([batch for batch in batches if not batch.loop])
    used, singles = [*loops, *singles], singles or loops
    task, sizing, collective = point.task, point.sizing, point.collective
    slowest = [us for batch in singles for us in times_us(batch.reports)]
    mean_us = fmean(us for batch in loops or singles for us in times_us(batch.reports))
    spread, around = replace(time_us(slowest), mean=mean_us), mean_interval(slowest)
    to_mean = mean_us / fmean(slowest)  # what the events between the calls add is not in the mean
    factor = collective.bus_factor(task.world_size)
    algbw = algbw_gb_s(sizing.size_bytes, mean_us)
    wrong = sum(report.wrong for batch in batches for report in batch.reports)
    return Point(
        op=collective.name,
        size_bytes=sizing.size_bytes,
        count=sizing.count,
        dtype=task.plan.dtype,
        iters=sum(len(batch.reports[0].durations_us) for batch in used),
        time_us=spread,
        first_us=point.first_us,
        algbw_gb_s=algbw,
        busbw_gb_s=algbw * factor,
        busbw_low_gb_s=None
        if around is None
        else algbw_gb_s(sizing.size_bytes, around.high * to_mean) * factor,
        busbw_high_gb_s=None
        if around is None
        else algbw_gb_s(sizing.size_bytes, around.low * to_mean) * factor,
        wrong=int(wrong) if task.plan.verify else None,
        unstable=_with_launches(used, unstable),
        ranks=_ranks(point, singles),
        first_wrong=_first_wrong(batches),
        wrong_ranks=_wrong_ranks(batches),
        samples_us=kept_samples(slowest),
    )


def _usable(batches: list[Batch]) -> list[Batch]:
    return [batch for batch in batches if not batch.launch_bound] or batches


def _with_launches(batches: Sequence[Batch], unstable: str | None) -> str | None:
    """Return why the figure is not to be trusted, with the launches where they were what was timed."""
    bound = sum(batch.launch_bound for batch in batches)
    if not bound:
        return unstable
    launches = (
        f"in {bound} of {len(batches)} batches a GPU waited until its host had enqueued the calls: "
        "the time is partly that of launching"
    )
    return f"{unstable}; {launches}" if unstable else launches


def _ranks(point: PointOf, batches: Sequence[Batch]) -> tuple[RankTime, ...]:
    by_rank = list(zip(*(batch.reports for batch in batches), strict=True))
    samples = [
        RankSamples(
            [us for report in reports for us in report.durations_us],
            [
                SampleBlock(len(report.durations_us), report.stalled_us, report.waited_us)
                for report in reports
            ],
        )
        for reports in by_rank
    ]
    times = rank_times(samples, point.task.hosts, together=point.collective.ends_together)
    return tuple(
        replace(time, clock_mhz=_clock_mhz(reports)) for time, reports in zip(times, by_rank, strict=True)
    )


def _clock_mhz(reports: Sequence[BatchReport]) -> float | None:
    clocks = [report.clock_mhz for report in reports if report.clock_mhz]
    return round(median(clocks), 1) if clocks else None


def _wrong_ranks(batches: Sequence[Batch]) -> tuple[int, ...]:
    return tuple(
        sorted({rank for batch in batches for rank, report in enumerate(batch.reports) if report.wrong})
    )


def _first_wrong(batches: Sequence[Batch]) -> WrongElement | None:
    for batch in batches:
        for rank, report in enumerate(batch.reports):
            if report.wrong:
                iteration, offset = int(report.iteration), int(report.offset)
                return WrongElement(rank, iteration, offset, _digits(report.got), _digits(report.expected))
    return None


def _digits(number: float) -> str:
    """Return as many digits as tell the number from every other one: a flipped bit shows."""
    return repr(float(number)).removesuffix(".0")
