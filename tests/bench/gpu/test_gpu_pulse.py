"""A rank that waits for its GPU says whether the GPU still runs anything. Whole groups are in `test_gpu_timer.py`."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
import torch

from ncclcheck.bench.gpu.gpu_pulse import GpuPulse
from ncclcheck.bench.progress_page import ProgressPage, new_page, read_page
from tests.bench.cuda_machine import Gpu, HungError, Machine
from tests.bench.cuda_stand_in import install

pytestmark = pytest.mark.slow  # imports torch


@pytest.fixture
def page() -> Iterator[int]:
    descriptor = new_page("test")
    yield descriptor
    os.close(descriptor)


def test_a_gpu_that_takes_long_and_runs_other_work_is_alive(
    page: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine([Gpu(), Gpu(stalls_at=0)])
    install(machine, monkeypatch)
    progress = ProgressPage(page)
    with machine.rank(1):
        machine.collective(25.0)()
    with machine.rank(0):
        pulse = GpuPulse(torch.device("cpu"))
        machine.collective(25.0)()
        progress.enter(3)
        entered_ns = read_page(page).stamp_ns
        with pytest.raises(HungError):
            pulse.synchronize(progress)
    seen = read_page(page)
    assert (seen.gpu, seen.inside, seen.iteration) == ("alive", True, 3)
    assert seen.stamp_ns == entered_ns  # an answer is no progress


def test_a_gpu_that_runs_nothing_is_silent(page: int, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine([Gpu(spins_forever_at=0)])
    install(machine, monkeypatch)
    progress = ProgressPage(page)
    with machine.rank(0):
        pulse = GpuPulse(torch.device("cpu"))
        machine.enqueue_spin(10.0)
        with pytest.raises(HungError):
            pulse.synchronize(progress)
    assert read_page(page).gpu == "silent"


def test_what_is_done_in_time_is_not_asked_for(page: int, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine([Gpu()])
    install(machine, monkeypatch)
    progress = ProgressPage(page)
    with machine.rank(0):
        pulse = GpuPulse(torch.device("cpu"))
        machine.enqueue_spin(1.9e6)
        pulse.synchronize(progress)
    assert read_page(page).gpu == ""
