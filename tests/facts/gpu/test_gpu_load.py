"""The load of the GPUs, read again and again from one child process, by a stand-in of the driver's library."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator

import pytest

from ncclcheck.facts.gpu.gpu_load import GpuLoads
from ncclcheck.model.fact import Missing
from ncclcheck.model.job.watched import GpuLoad
from tests.facts.nvml import stand_in

LoadsOf = Callable[[str], GpuLoads]


@pytest.fixture
def loads_of() -> Iterator[LoadsOf]:
    """Loads by an NVML that behaves so."""
    made: list[GpuLoads] = []

    def make(behaviour: str) -> GpuLoads:
        made.append(GpuLoads(stand_in(behaviour)))
        return made[-1]

    yield make
    for loads in made:
        loads.close()


def test_memory_power_and_processes_of_each_gpu_are_told_by_the_same_child(loads_of: LoadsOf) -> None:
    loads = loads_of("nvmlDeviceGetCount=2 memoryBusy:1=42 nvmlDeviceGetPowerUsage=610000 processes:1=77")
    first = loads.read(30)
    child = loads.pid
    assert first == (
        GpuLoad(0, 610_000, 700_000, ()),
        GpuLoad(42, 610_000, 700_000, (77,)),
    )
    assert loads.read(30) == first
    assert loads.pid == child
    loads.close()
    assert loads.pid is None


def test_what_a_driver_does_not_tell_is_not_made_up(loads_of: LoadsOf) -> None:
    loads = loads_of("nvmlDeviceGetCount=1 nvmlDeviceGetPowerUsage=error:3 processes=error:4")
    assert loads.read(30) == (GpuLoad(0, None, 700_000, None),)


def test_without_a_driver_it_is_asked_once() -> None:
    loads = GpuLoads({"LD_LIBRARY_PATH": "", "PATH": ""})
    first = loads.read(30)
    assert isinstance(first, Missing)
    assert first.missing == "absent"
    assert loads.pid is None
    assert loads.read(0) is first


def test_a_driver_that_hangs_costs_the_deadline_once(loads_of: LoadsOf) -> None:
    loads = loads_of("nvmlDeviceGetUtilizationRates=hang")
    told = loads.read(1.5)
    assert isinstance(told, Missing)
    assert told.missing == "timeout"
    began = time.monotonic()
    assert loads.read(30) is told
    assert time.monotonic() - began < 1


def test_a_child_that_was_killed_is_no_load(loads_of: LoadsOf) -> None:
    loads = loads_of("")
    loads.read(30)
    assert loads.pid is not None
    os.kill(loads.pid, signal.SIGKILL)
    assert isinstance(loads.read(30), Missing)
