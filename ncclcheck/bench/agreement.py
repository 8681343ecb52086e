"""How the ranks of a benchmark exchange numbers between batches, so that all decide alike from the same numbers."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from ncclcheck.bench.gathering import all_gather
from ncclcheck.bench.gpu.device import Device
from ncclcheck.bench.progress_page import ProgressPage


class BatchReport(Struct, frozen=True):
    """One rank's view of one batch. The first wrong element counts only where `wrong` is not 0."""

    now_s: float  # this rank's clock since it joined; the ranks decide by rank 0's
    stalled_us: float
    waited_us: float  # for a core
    wrong: float
    iteration: float
    offset: float
    got: float
    expected: float
    lead_in_us: float  # of the call before the first timed one; 0: there was none
    clock_mhz: float  # of its GPU; 0: it has none
    launch_bound: float  # 1: its GPU waited for its host (bench.gpu_timer)
    durations_us: list[float]


_NUMBERS = 11


def barrier(device: Device, progress: ProgressPage) -> None:
    """Wait until every rank has come here and the device is idle."""
    import torch
    import torch.distributed as dist

    progress.enter()
    dist.all_reduce(torch.zeros(1, device=device.torch_device))
    device.synchronize(progress)
    progress.leave(measured=False)


def exchange(own_report: BatchReport, device: Device, progress: ProgressPage) -> list[BatchReport]:
    """Return the reports of all ranks, by rank; all ranks must give the same number of durations."""
    import torch
    import torch.distributed as dist

    world_size = dist.get_world_size()
    numbers = [own_report.now_s, own_report.stalled_us, own_report.waited_us, own_report.wrong]
    numbers += [
        own_report.iteration,
        own_report.offset,
        own_report.got,
        own_report.expected,
        own_report.lead_in_us,
    ]
    numbers += [own_report.clock_mhz, own_report.launch_bound]
    sent = torch.tensor(numbers + own_report.durations_us, dtype=torch.float64, device=device.torch_device)
    received = torch.empty(world_size * sent.numel(), dtype=torch.float64, device=device.torch_device)
    progress.enter()
    all_gather(sent, received)
    device.synchronize(progress)
    rows: list[list[float]] = received.cpu().view(world_size, -1).tolist()
    progress.leave(measured=False)
    return [_report(row) for row in rows]


def all_refused(device: Device, progress: ProgressPage) -> bool:
    """Return whether every rank asks this: the backend rejected its call. Another rank is in that call, or beyond.

    Then the ranks are out of step, which ends as every other call does to which not all ranks come.
    """
    import torch
    import torch.distributed as dist

    asked = torch.ones(1, dtype=torch.float64, device=device.torch_device)
    progress.enter()
    dist.all_reduce(asked)
    device.synchronize(progress)
    answered = int(asked.item())
    progress.leave(measured=False)
    return answered == int(dist.get_world_size())


def _report(row: Sequence[float]) -> BatchReport:
    now_s, stalled_us, waited_us, wrong, iteration, offset, *rest = row[:_NUMBERS]
    got, expected, lead_in_us, clock_mhz, launch_bound = rest
    return BatchReport(
        now_s,
        stalled_us,
        waited_us,
        wrong,
        iteration,
        offset,
        got,
        expected,
        lead_in_us,
        clock_mhz,
        launch_bound,
        list(row[_NUMBERS:]),
    )
