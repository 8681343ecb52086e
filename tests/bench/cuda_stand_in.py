"""A stand-in for `torch.cuda`: events, graphs and streams of the GPUs of `cuda_machine`, without a GPU.

Every call is bound to the signature of the real `torch.cuda` first, so what that would not take fails here too.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any, ClassVar

import pytest
import torch

from ncclcheck.bench.gpu import device, gpu_pulse, gpu_timer
from ncclcheck.bench.gpu.gpu_health import HealthWatch
from ncclcheck.bench.gpu.gpu_parts import GpuParts, Work
from tests.bench.cuda_machine import NOMINAL_MHZ, Gpu, Kernel, Machine, Share

_EVENT, _GRAPH, _STREAM = torch.cuda.Event, torch.cuda.CUDAGraph, torch.cuda.Stream  # the real ones


class Clock:
    """The host's clock of the rank whose thread asks: what `time` is to the code under test."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def perf_counter(self) -> float:
        """Return seconds."""
        return self._machine.gpu.host_us / 1e6

    def sleep(self, _seconds: float) -> None:
        """The host's time passes until the event that was asked for last, as polling would have it."""
        self._machine.wait_until(self._machine.awaited_us + self._machine.gpu.wakes_late_us)


class _Event:
    """`torch.cuda.Event`."""

    machine: ClassVar[Machine]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        signature(_EVENT.__new__).bind(_EVENT, *args, **kwargs)
        self._kernel: Kernel | None = None

    def record(self, *args: Any) -> None:
        """The stream will come to it."""
        signature(_EVENT.record).bind(self, *args)
        self._kernel = self.machine.enqueue_event()

    def query(self, *args: Any) -> bool:
        """Return whether the stream has come to it by now, on the host's clock."""
        signature(_EVENT.query).bind(self, *args)
        return self.machine.is_reached(self.reached_us())

    def elapsed_time(self, ended: _Event) -> float:
        """Return milliseconds."""
        signature(_EVENT.elapsed_time).bind(self, ended)
        return (ended.reached_us() - self.reached_us()) / 1e3

    def reached_us(self) -> float:
        """Return when the stream came to it."""
        assert self._kernel is not None, "the event was not recorded"
        return self.machine.reached_us(self._kernel)


class _Graph:
    """`torch.cuda.CUDAGraph`."""

    machine: ClassVar[Machine]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        signature(_GRAPH.__new__).bind(_GRAPH, *args, **kwargs)
        self._calls: list[tuple[float, Share | None]] = []

    def capture_begin(self, *args: Any, **kwargs: Any) -> None:
        """Collectives are kept instead of run."""
        signature(_GRAPH.capture_begin).bind(self, *args, **kwargs)
        self.machine.capture(self._calls)

    def capture_end(self) -> None:
        """They are run again."""
        signature(_GRAPH.capture_end).bind(self)
        self.machine.capture(None)

    def replay(self) -> None:
        """Those that were kept run."""
        signature(_GRAPH.replay).bind(self)
        self.machine.replays[self.machine.number] += 1
        for call in self._calls:
            self.machine.collective(*call)()


class _Stream:
    """`torch.cuda.Stream`, of which there is only one here."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        signature(_STREAM.__new__).bind(_STREAM, *args, **kwargs)


def install(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """`torch.cuda` is then the stand-in, as far as the code under test uses it."""
    functions: dict[str, Callable[..., Any]] = {
        "_sleep": lambda cycles: machine.enqueue_spin(cycles / machine.gpu.clock_mhz),
        "synchronize": lambda: machine.synchronize(),
        "mem_get_info": lambda: (machine.gpu.free_bytes, machine.gpu.free_bytes),
        "stream": lambda stream: machine.on_stream(stream),
        "set_device": lambda _: None,
        "device_count": lambda: 1,
        "get_device_name": lambda _: "NVIDIA H100 80GB HBM3",
    }
    for name, function in functions.items():
        monkeypatch.setattr(torch.cuda, name, _checked(getattr(torch.cuda, name), function))
    monkeypatch.setattr(torch.cuda, "Event", type("Event", (_Event,), {"machine": machine}))
    monkeypatch.setattr(torch.cuda, "CUDAGraph", type("CUDAGraph", (_Graph,), {"machine": machine}))
    monkeypatch.setattr(torch.cuda, "Stream", _Stream)
    monkeypatch.setattr(device, "GPU_POOL_BYTES", 1 << 20)  # of zeros that are written, for each rank
    for module in (gpu_timer, gpu_pulse):
        monkeypatch.setattr(module, "time", Clock(machine))


def parts_of(machine: Machine, health: HealthWatch) -> GpuParts:
    """The work by which GPUs are compared, which takes its time on the GPU of the rank that asks."""

    def work(amount: float, takes_us: Callable[[Gpu], float]) -> Work:
        return Work(lambda: machine.enqueue_spin(takes_us(machine.gpu)), amount)

    flop, size = 2.0 * 4096**3, float(128 << 20)
    return GpuParts(
        "NVIDIA H100 80GB HBM3",
        lambda _: work(flop, lambda gpu: flop / gpu.tflop_s / 1e6 * NOMINAL_MHZ / gpu.clock_mhz),
        lambda: work(size, lambda gpu: size / gpu.memory_gb_s / 1e3),
        lambda: work(size, lambda gpu: size / gpu.pcie_gb_s / 1e3),
        health,
        torch.empty(256 << 20, dtype=torch.uint8),
    )


def _checked(real: Callable[..., Any], stand_in: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        signature(real).bind(*args, **kwargs)
        return stand_in(*args, **kwargs)

    return call
