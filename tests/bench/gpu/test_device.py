"""Calls are timed one by one, and whoever looks sees which of them a rank is inside."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from ncclcheck.bench.gpu.device import open_device
from ncclcheck.bench.progress_page import Progress, ProgressPage, new_page, read_page

pytestmark = pytest.mark.slow  # imports torch


@pytest.fixture
def page() -> Iterator[int]:
    descriptor = new_page("test")
    yield descriptor
    os.close(descriptor)


def test_every_call_is_made_in_order_with_its_iteration_on_the_page(page: int) -> None:
    seen: list[Progress] = []
    calls = [(iteration, lambda: seen.append(read_page(page))) for iteration in (5, 6, 7)]
    times_us = open_device("gloo", 0).time_calls(calls, ProgressPage(page))
    assert [(progress.iteration, progress.inside, progress.calls) for progress in seen] == [
        (5, True, 1),
        (6, True, 2),
        (7, True, 3),
    ]
    assert len(times_us) == 3
    assert all(0 < time_us < 1e6 for time_us in times_us)
    after = read_page(page)
    assert not after.inside
    assert after.longest_call_ns >= max(times_us) * 1e3


def test_a_call_that_raises_leaves_the_page_inside_it(page: int) -> None:
    def fails() -> None:
        raise RuntimeError("Connection closed by peer")

    with pytest.raises(RuntimeError, match="closed by peer"):
        open_device("gloo", 0).time_calls([(1, lambda: None), (2, fails)], ProgressPage(page))
    seen = read_page(page)
    assert (seen.inside, seen.iteration) == (True, 2)


def test_gloo_measures_in_the_memory_of_the_host() -> None:
    device = open_device("gloo", 3)
    assert device.torch_device.type == "cpu"
    device.synchronize(ProgressPage(None))


def test_on_a_gpu_the_time_is_that_of_the_kernel_and_not_of_its_launch(page: int) -> None:
    import torch

    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    device = open_device("nccl", 0)
    cycles = 50_000_000
    calls = [(1, lambda: torch.cuda._sleep(cycles)), (2, lambda: torch.cuda._sleep(2 * cycles))]
    device.time_calls(calls, ProgressPage(None))  # the first launch of a kernel loads it
    once_us, twice_us = device.time_calls(calls, ProgressPage(page))
    assert twice_us == pytest.approx(2 * once_us, rel=0.2)
    seen = read_page(page)
    assert (seen.iteration, seen.inside, seen.calls) == (2, False, 2)
