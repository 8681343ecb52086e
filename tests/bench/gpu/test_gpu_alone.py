"""GPUs that do the same work at the same time, on the stand-in: each figure is true, and the slow one is named."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from msgspec.structs import replace

from ncclcheck.bench.gathering import DOCUMENT_BYTES
from ncclcheck.bench.gpu import gpu_alone
from ncclcheck.bench.gpu.device import Device, gpu_device
from ncclcheck.bench.gpu.gpu_alone import gpu_speeds
from ncclcheck.bench.gpu.gpu_health import HealthWatch
from ncclcheck.bench.gpu.gpu_parts import GpuParts, Work
from ncclcheck.bench.heartbeat import Heartbeat
from ncclcheck.bench.point import BenchRank
from ncclcheck.bench.progress_page import ProgressPage
from ncclcheck.bench.task import WorkerTask
from ncclcheck.measure.blame_gpus import slow_gpus
from ncclcheck.model.bench import BenchPlan, GpuSpeed
from tests.bench.cuda_machine import Gpu, Machine
from tests.bench.cuda_stand_in import install, parts_of
from tests.bench.gpu.nvml_stand_in import THERMAL, Nvml

pytestmark = pytest.mark.slow  # imports torch
PLAN = BenchPlan("nccl", ("all_reduce",), (1 << 20,), "float32", 5, 60, 5.0, verify=False)
CLOCKS = (1980.0, 1965.0, 1950.0, 1980.0)


class Group:
    """The ranks as threads; barriers and gathering are in step, as a process group has it."""

    def __init__(self, machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
        self._machine, self._size = machine, len(machine.gpus)
        self._barrier = threading.Barrier(self._size)
        self._documents: dict[int, bytes] = {}
        install(machine, monkeypatch)
        monkeypatch.setattr(gpu_alone, "barrier", self._meet)
        monkeypatch.setattr(gpu_alone, "gather_documents", self._gather)

    def _meet(self, device: Device, progress: ProgressPage) -> None:
        progress.enter()
        self._machine.collective(25.0)()
        device.synchronize(progress)
        progress.leave(measured=False)

    def _gather(
        self, own: bytes, _world_size: int, _device: Device, _progress: ProgressPage
    ) -> Sequence[bytes]:
        assert len(own) <= DOCUMENT_BYTES
        self._barrier.wait(30)
        self._documents[self._machine.number] = own
        self._barrier.wait(30)
        return [self._documents[rank] for rank in range(self._size)]

    def speeds(self, health: Sequence[HealthWatch], parts: Sequence[GpuParts] = ()) -> list[GpuSpeed]:
        """What the ranks agreed on."""

        def on_rank(number: int) -> tuple[GpuSpeed, ...]:
            with self._machine.rank(number):
                hosts = tuple(f"node{rank + 1:02}" for rank in range(self._size))
                task = WorkerTask(number, self._size, number, "127.0.0.1", 1, "test/", PLAN, hosts)
                device = gpu_device(torch.device("cpu"))
                empty = torch.empty(0)
                rank = BenchRank(task, device, empty, empty, ProgressPage(None), Heartbeat(), 0.0)
                return gpu_speeds(rank, parts[number] if parts else parts_of(self._machine, health[number]))

        with ThreadPoolExecutor(self._size) as threads:
            found = list(threads.map(on_rank, range(self._size)))
        assert all(speeds == found[0] for speeds in found)
        return list(found[0])


def healthy() -> list[Gpu]:
    return [Gpu(clock, host_us=20.0 * number) for number, clock in enumerate(CLOCKS)]


def quiet(count: int) -> list[HealthWatch]:
    return [HealthWatch("", Nvml) for _ in range(count)]


def test_gpus_whose_clocks_are_30_mhz_apart_are_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    speeds = Group(Machine(healthy()), monkeypatch).speeds(quiet(4))
    assert [speed.clock_mhz for speed in speeds] == pytest.approx(list(CLOCKS), rel=2e-3)
    assert [speed.compute_tflop_s for speed in speeds] == pytest.approx(
        [700 * clock / 1980 for clock in CLOCKS], rel=0.01
    )
    assert {round(speed.device_gb_s / 2500, 2) for speed in speeds} == {1.0}
    assert {round(speed.host_gb_s / 55, 2) for speed in speeds} == {1.0}
    assert slow_gpus(speeds) == ()


def test_the_throttled_gpu_is_named_with_nvmls_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    gpus, watches = healthy(), quiet(4)
    gpus[2].clock_mhz = 1755.0
    nvml = Nvml((THERMAL,))
    watches[2] = HealthWatch("00000000:1B:00.0", lambda: nvml)
    assert nvml.looked.wait(30)
    (slow,) = slow_gpus(Group(Machine(gpus), monkeypatch).speeds(watches))
    assert (slow.rank, slow.host, slow.part) == (2, "node03", "throttled")
    assert slow.value == pytest.approx(1755.0, rel=0.01)
    assert slow.health.slowdowns == ("hardware thermal slowdown",)


@pytest.mark.parametrize(
    ("changed", "value", "part"),
    [
        ("memory_gb_s", 1500.0, "slow memory"),
        ("pcie_gb_s", 26.0, "slow PCIe"),
        ("tflop_s", 420.0, "throttled"),
    ],
)
def test_the_part_that_is_slow_is_named(
    monkeypatch: pytest.MonkeyPatch, changed: str, value: float, part: str
) -> None:
    gpus = healthy()
    setattr(gpus[1], changed, value)
    (slow,) = slow_gpus(Group(Machine(gpus), monkeypatch).speeds(quiet(4)))
    assert (slow.rank, slow.part) == (1, part)


def test_a_gpu_without_room_for_the_work_measures_nothing_and_holds_nobody_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine = Machine(healthy())

    def full() -> Work:
        raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 32.00 MiB")

    parts = [parts_of(machine, watch) for watch in quiet(4)]
    parts[3] = replace(parts[3], copy_from_host=full)
    speeds = Group(machine, monkeypatch).speeds(quiet(4), parts)
    assert [speed.host_gb_s > 0 for speed in speeds] == [True, True, True, False]
    assert slow_gpus(speeds) == ()


def test_what_was_slow_in_the_first_pass_only_is_not_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another program took the GPU for a moment."""
    machine = Machine(healthy())
    parts = [parts_of(machine, watch) for watch in quiet(4)]
    asked: list[int] = []

    def disturbed() -> Work:
        work = parts_of(machine, quiet(1)[0]).copy_within()
        asked.append(1)
        return replace(work, amount=work.amount / 4) if len(asked) == 1 else work

    parts[3] = replace(parts[3], copy_within=disturbed)
    speeds = Group(machine, monkeypatch).speeds(quiet(4), parts)
    assert slow_gpus(speeds) == ()
    assert len(asked) == 2
