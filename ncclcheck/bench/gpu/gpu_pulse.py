"""Waits for a GPU, and meanwhile asks whether it still runs anything, by a small kernel beside the call."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ncclcheck import timeouts
from ncclcheck.bench.progress_page import ProgressPage

if TYPE_CHECKING:
    import torch


class GpuPulse:
    """A stream beside the one that is measured. A class because the last kernel on it may still have to run.

    The kernel runs once before, since loading it while NCCL's kernels wait for each other could block. It is launched
    only after a call has lasted for seconds, so nothing is measured beside it. With CUDA_DEVICE_MAX_CONNECTIONS=1 it
    may wait behind the call, on every GPU alike; `bench.watch` blames a silent GPU only where others answered.
    """

    def __init__(self, device: torch.device) -> None:
        import torch

        self._stream = torch.cuda.Stream()
        self._cell = torch.zeros(1, device=device)
        self._asked_s = 0.0
        self._beat = self._launch()
        self._is_out = False  # a beat that has not come back

    def wait_for(self, event: torch.cuda.Event, progress: ProgressPage) -> None:
        """Return once the GPU has come to the event; the page says whether it answers, if that takes long."""
        began_s = time.perf_counter()
        while not event.query():
            time.sleep(timeouts.CUDA_EVENT_POLL_S)
            if time.perf_counter() - began_s > timeouts.GPU_PULSE_AFTER_S:
                self._look(progress)

    def synchronize(self, progress: ProgressPage) -> None:
        """Return once all that was enqueued on the current stream is done."""
        import torch

        event = torch.cuda.Event()
        event.record()
        self.wait_for(event, progress)

    def _look(self, progress: ProgressPage) -> None:
        now_s = time.perf_counter()
        if not self._is_out:
            if now_s - self._asked_s >= timeouts.GPU_PULSE_EVERY_S:
                self._beat, self._asked_s, self._is_out = self._launch(), now_s, True
        elif self._beat.query():
            self._is_out = False
            progress.see_gpu("alive")
        elif now_s - self._asked_s > timeouts.GPU_SILENT_S:
            progress.see_gpu("silent")

    def _launch(self) -> torch.cuda.Event:
        import torch

        with torch.cuda.stream(self._stream):
            self._cell.add_(1)
            beat = torch.cuda.Event()
            beat.record()
        return beat
