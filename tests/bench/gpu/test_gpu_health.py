"""What NVML says while a benchmark runs: a reason that held for a moment, a counter that grew, a driver that hangs."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from ncclcheck import timeouts
from ncclcheck.bench.gpu.gpu_health import GpuLook, HealthWatch, cuda_address
from ncclcheck.model.bench import GpuHealth
from ncclcheck.model.fact import Missing
from tests.bench.gpu.nvml_stand_in import IDLE, THERMAL, Nvml


def test_a_reason_that_held_for_one_look_only_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeouts, "GPU_LOOK_S", 0.001)
    nvml = Nvml((IDLE, THERMAL, 0))
    watch = HealthWatch("00000000:1B:00.0", lambda: nvml)
    assert nvml.looked.wait(30)
    nvml.nvlink_errors += 5
    assert watch.take() == GpuHealth("0000:1b:00.0", ("hardware thermal slowdown",), 5, 0)
    assert nvml.address == b"0000:1b:00.0"


def test_what_this_gpu_does_not_count_is_missing_and_the_rest_is_there() -> None:
    nvml = Nvml(links=False)
    watch = HealthWatch("00000000:1B:00.0", lambda: nvml)
    assert nvml.looked.wait(30)
    nvml.replays += 2
    health = watch.take()
    assert isinstance(health.nvlink_errors, Missing)
    assert (health.slowdowns, health.pcie_replays) == ((), 2)


def seen_by(watch: HealthWatch, nvml: Nvml) -> GpuLook:
    """What a look tells once NVML was asked for the clock two more times."""
    until = nvml.looks + 2
    deadline = time.monotonic() + 30
    while nvml.looks < until:
        assert time.monotonic() < deadline
        time.sleep(0.002)
    return watch.look()


def test_each_look_tells_what_was_so_since_the_last_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeouts, "GPU_LOOK_S", 0.001)
    nvml = Nvml()
    watch = HealthWatch("00000000:1B:00.0", lambda: nvml)
    assert nvml.looked.wait(30)
    assert nvml.looks == 0  # a benchmark does not ask for it
    watch.look()
    assert seen_by(watch, nvml) == GpuLook((), 1980, 50, 0, 0)
    nvml.masks, nvml.clock_mhz, nvml.temperature_c = [THERMAL], 1200, 87
    nvml.nvlink_errors += 5
    nvml.replays += 2
    hot = seen_by(watch, nvml)
    assert (hot.slowdowns, hot.clock_mhz, hot.temperature_c) == (("hardware thermal slowdown",), 1200, 87)
    assert (hot.nvlink_errors, hot.pcie_replays) == (5, 2)
    nvml.masks, nvml.clock_mhz, nvml.temperature_c = [0], 1980, 60
    seen_by(watch, nvml)  # may have begun before
    assert seen_by(watch, nvml) == GpuLook((), 1980, 60, 0, 0)
    watch.take()


def test_a_driver_that_hangs_costs_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeouts, "GPU_HEALTH_S", 0.05)
    hangs = threading.Event()

    def nvml() -> Any:
        hangs.wait(30)
        raise OSError

    health = HealthWatch("0000:1b:00.0", nvml).take()
    hangs.set()
    assert isinstance(health.slowdowns, Missing)
    assert health.slowdowns.missing == "timeout"


def test_without_nvml_or_a_gpu_nothing_is_known_and_nothing_fails() -> None:
    def nvml() -> Any:
        raise ImportError("No module named 'pynvml'")

    health = HealthWatch("0000:1b:00.0", nvml).take()
    assert isinstance(health.pcie_replays, Missing)
    assert "No module named 'pynvml'" in health.pcie_replays.detail
    assert isinstance(HealthWatch("", nvml).take().slowdowns, Missing)
    assert cuda_address(4711) == ""
