"""Links between GPUs on the stand-in: timed by the GPU, at a size that a fast card needs, on every rail."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from ncclcheck.bench.gpu import gpu_links as module
from ncclcheck.bench.gpu.device import Device, gpu_device
from ncclcheck.bench.gpu.gpu_links import TRANSFER_BYTES, gpu_links
from ncclcheck.bench.heartbeat import Heartbeat
from ncclcheck.bench.point import BenchRank
from ncclcheck.bench.progress_page import ProgressPage
from ncclcheck.bench.task import WorkerTask
from ncclcheck.measure.links.rails import slow_rails
from ncclcheck.model.bench import BenchPlan, LinkSpeed
from tests.bench.cuda_machine import Gpu, Machine
from tests.bench.cuda_stand_in import install

pytestmark = pytest.mark.slow  # imports torch
PLAN = BenchPlan("nccl", ("all_reduce",), (1 << 20,), "float32", 5, 60, 5.0, verify=False)
START_US = 60.0  # of a transfer, whatever its size
CONNECTS_US = 50_000.0


class Group:
    """Ranks as threads on nodes with so many GPUs each; `gb_s` is the speed from one rank to another."""

    def __init__(self, hosts: Sequence[str], gb_s: Callable[[int, int], float]) -> None:
        self.hosts, self._gb_s = tuple(hosts), gb_s
        self.machine = Machine([Gpu(host_us=20.0 * rank) for rank in range(len(hosts))])
        self.sizes: set[int] = set()
        self._barrier = threading.Barrier(len(hosts))
        self._rows: dict[int, list[float]] = {}
        self._connected: set[tuple[int, int, int]] = set()

    def meet(self, device: Device, progress: ProgressPage) -> None:
        self.machine.collective(25.0)()
        device.synchronize(progress)

    def share(self, rank: BenchRank, numbers: Sequence[float]) -> list[list[float]]:
        self._barrier.wait(30)
        self._rows[rank.task.rank] = list(numbers)
        self._barrier.wait(30)
        return [self._rows[number] for number in range(len(self.hosts))]

    def enqueue(self, lane: module._Lane, size_bytes: int, peer: int, *, is_receiver: bool) -> None:
        own = lane.rank.task.rank
        source, target = (peer, own) if is_receiver else (own, peer)
        self.sizes.add(size_bytes)
        connects_us = 0.0 if (source, target, own) in self._connected else CONNECTS_US
        self._connected.add((source, target, own))
        takes_us = START_US + connects_us + size_bytes / self._gb_s(source, target) / 1e3
        self.machine.enqueue_transfer(source, target, takes_us)

    def links(self, monkeypatch: pytest.MonkeyPatch) -> tuple[LinkSpeed, ...]:
        """What the ranks agreed on."""
        install(self.machine, monkeypatch)
        monkeypatch.setattr(module, "barrier", self.meet)
        monkeypatch.setattr(module, "_shared", self.share)
        monkeypatch.setattr(module, "_enqueue", self.enqueue)
        empty = torch.empty(0)
        scratch = torch.empty(256 << 20, dtype=torch.uint8)

        def on_rank(number: int) -> tuple[LinkSpeed, ...]:
            with self.machine.rank(number):
                task = WorkerTask(number, len(self.hosts), number, "127.0.0.1", 1, "test/", PLAN, self.hosts)
                device = gpu_device(torch.device("cpu"))
                rank = BenchRank(task, device, empty, empty, ProgressPage(None), Heartbeat(), 0.0)
                return gpu_links(rank, scratch)

        with ThreadPoolExecutor(len(self.hosts)) as threads:
            found = list(threads.map(on_rank, range(len(self.hosts))))
        assert all(links == found[0] for links in found)
        return found[0]


def nodes(count: int, each: int) -> list[str]:
    return [f"node{number // each + 1:02}" for number in range(count * each)]


def test_a_400g_card_is_measured_as_one_on_every_rail(monkeypatch: pytest.MonkeyPatch) -> None:
    group = Group(nodes(2, 3), lambda source, target: 48.5 if source // 3 != target // 3 else 390.0)
    found = group.links(monkeypatch)
    between = [link for link in found if link.from_host != link.to_host]
    assert {(link.from_rank, link.to_rank) for link in between} == {
        (0, 3),
        (1, 4),
        (2, 5),
        (3, 0),
        (4, 1),
        (5, 2),
    }
    assert [link.gb_s for link in between] == pytest.approx([48.5] * 6, rel=0.03)
    inside = [link.gb_s for link in found if link.from_host == link.to_host]
    assert len(inside) == 12
    assert min(inside) > 300
    assert max(group.sizes) == TRANSFER_BYTES == 128 << 20
    assert slow_rails(found) == ()


def test_the_slow_rail_is_named_after_it_was_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    group = Group(nodes(3, 2), lambda source, target: 20.0 if 3 in (source, target) else 48.5)
    (slow,) = slow_rails(group.links(monkeypatch))
    assert (slow.rank, slow.host, slow.place, slow.is_sure) == (3, "node02", "rail", True)


def test_over_a_slow_network_transfers_are_smaller_so_that_they_end_soon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    group = Group(nodes(2, 1), lambda *_: 0.11)
    found = group.links(monkeypatch)
    assert [link.gb_s for link in found] == pytest.approx([0.11, 0.11], rel=0.03)
    assert sorted(group.sizes)[0] < 8 << 20
    assert max(group.sizes) == 8 << 20


def test_one_gpu_alone_has_no_links(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Group(nodes(1, 1), lambda *_: 1.0).links(monkeypatch) == ()
