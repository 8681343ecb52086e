"""How calls are timed on a GPU: everything is enqueued while a kernel holds the stream, and events tell the times."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from ncclcheck import timeouts
from ncclcheck.bench.gpu.gpu_pulse import GpuPulse
from ncclcheck.bench.progress_page import ProgressPage

if TYPE_CHECKING:
    import torch

Call: TypeAlias = Callable[[], object]
Calls: TypeAlias = Sequence[tuple[int, Call]]  # (iteration, the call)
_ASSUMED_MHZ = 2000.0  # until the GPU's clock was measured: near that of any current one
_HOLD_FACTOR = 2.0  # the hold is so many times as long as the enqueueing is expected to take


class Conditions(Struct, frozen=True):
    """What a batch was measured under: the GPU's clock (0: no GPU), and whether its calls waited for the host.

    `launch_bound`: the GPU had begun with the timed calls before the host had enqueued them all.
    """

    clock_mhz: float = 0.0
    launch_bound: bool = False


class GpuTimer:
    """Times calls on the current GPU. A class because the hold follows what enqueueing took and how fast the GPU is.

    The spin kernel is nvbandwidth's method (NVIDIA/nvbandwidth `memcpy.cpp`, spinKernel), with torch's own spin kernel.
    It spins for a number of cycles, so it ends at another moment on each GPU: 10.1 ms at 1980 MHz, 11.4 ms at 1755 MHz.
    `gate` is a call that no rank leaves before all have come; it goes between spin and first event and is not timed, so
    the clocks of all ranks begin together. Two calls in a row share the event between them.
    """

    def __init__(self, gate: Call, pulse: GpuPulse) -> None:
        self._gate, self._pulse = gate, pulse
        self._clock_mhz = _ASSUMED_MHZ
        self._call_s = 0.0  # what enqueueing one call took the last time
        self.conditions = Conditions()

    def time_calls(self, calls: Calls, progress: ProgressPage) -> list[float]:
        """Make the calls back to back; return the microseconds of each."""
        return self._time(calls, range(len(calls)), progress)

    def time_loop(self, calls: Calls, lead_in: int, progress: ProgressPage) -> list[float]:
        """Make the calls back to back with no event between them; return the mean microseconds for each.

        As nccl-tests does (2.19.6, `src/common.cu`, BenchTime). The first `lead_in` calls are timed one by one.
        """
        marks = [*range(lead_in), len(calls) - 1]
        *before_us, loop_us = self._time(calls, marks, progress)
        timed = len(calls) - lead_in
        return before_us + [loop_us / timed] * timed

    def _time(self, calls: Calls, marks: Sequence[int], progress: ProgressPage) -> list[float]:
        """Return the microseconds up to the end of each call in `marks`, from the end of the one in it before.

        The page shows the first call while the host enqueues them all: it may wait in one of them for other ranks.
        """
        import torch

        event = partial(torch.cuda.Event, enable_timing=True)
        spin, events = (event(), event()), [event() for _ in range(len(marks) + 1)]
        progress.enter(calls[0][0])
        began_s = time.perf_counter()
        cycles = self._hold(spin, len(calls))
        self._gate()
        events[0].record()
        self._enqueue(calls, dict(zip(marks, events[1:], strict=True)))
        launch_bound = bool(events[0].query())
        if calls[0][0]:  # the first call of a point connects
            self._call_s = (time.perf_counter() - began_s) / len(calls)
        self._follow(calls, dict(zip(marks, events[1:], strict=True)), spin[1], progress)
        self._clock_mhz = cycles / spin[0].elapsed_time(spin[1]) / 1e3
        self.conditions = Conditions(self._clock_mhz, launch_bound)
        return [began.elapsed_time(ended) * 1e3 for began, ended in pairwise(events)]

    def _hold(self, spin: tuple[torch.cuda.Event, torch.cuda.Event], calls: int) -> int:
        """Enqueue the spin kernel between its two events; return its cycles."""
        import torch

        expected_s = _HOLD_FACTOR * self._call_s * calls
        hold_s = min(max(expected_s, timeouts.CUDA_HOLD_S), timeouts.CUDA_HOLD_LONGEST_S)
        cycles = int(hold_s * self._clock_mhz * 1e6)
        spin[0].record()
        torch.cuda._sleep(cycles)
        spin[1].record()
        return cycles

    def _follow(
        self,
        calls: Calls,
        event_after: dict[int, torch.cuda.Event],
        arrival: torch.cuda.Event,
        progress: ProgressPage,
    ) -> None:
        """Wait for the events and show on the page how far the GPU is: a call is entered when it has come to it."""
        progress.fall_behind()
        self._pulse.wait_for(arrival, progress)
        first = 0
        for mark, ended in event_after.items():
            progress.enter(calls[first][0])
            self._pulse.wait_for(ended, progress)
            progress.leave()
            first = mark + 1

    @staticmethod
    def _enqueue(calls: Calls, event_after: dict[int, torch.cuda.Event]) -> None:
        for number, (_, call) in enumerate(calls):
            call()
            if number in event_after:
                event_after[number].record()


def captured(call: Call) -> Call:
    """Return the call as a CUDA graph of its own, whose replay does the same on the same buffers.

    Capture is thread-local: torch's watchdog of the group may query events of other work meanwhile, which the default
    mode forbids (PyTorch, `torch.cuda.graph`, capture_error_mode). That context manager also collects garbage and
    empties the allocator's cache for each capture, which takes a second for a batch of buffers. Here none is collected
    meanwhile instead: an object that frees GPU memory would end the capture.
    """
    import torch

    graph, side = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    torch.cuda.synchronize()
    collects = gc.isenabled()
    gc.disable()
    try:
        with torch.cuda.stream(side):
            graph.capture_begin(capture_error_mode="thread_local")
            try:
                call()
            finally:
                graph.capture_end()
    finally:
        if collects:
            gc.enable()
    return partial(torch.cuda.CUDAGraph.replay, graph)
