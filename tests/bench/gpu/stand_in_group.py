"""A process group of ranks that are threads on the stand-in for `torch.cuda`: it takes its time, and moves the data."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from inspect import signature
from types import SimpleNamespace
from typing import Any, TypeAlias, TypeVar

import pytest
import torch
import torch.distributed as dist
from msgspec.structs import replace

from ncclcheck.bench import parts_alone
from ncclcheck.bench.culprits import RankState, judge
from ncclcheck.bench.gpu.device import gpu_device
from ncclcheck.bench.gpu.gpu_health import HealthWatch
from ncclcheck.bench.heartbeat import NOT_IDLE, Heartbeat, Idle
from ncclcheck.bench.parts_alone import isolate
from ncclcheck.bench.point import BenchRank, measure_all, prepare, with_agreed_buffers
from ncclcheck.bench.progress_page import Progress, ProgressPage, new_page, read_page
from ncclcheck.bench.task import WorkerTask
from ncclcheck.bench.worker import _kind
from ncclcheck.measure.collectives import ROOT
from ncclcheck.model.bench import BenchPlan, Isolation, Point, RankFailure
from tests.bench.cuda_machine import HungError, KilledError, Machine, Share
from tests.bench.cuda_stand_in import install, parts_of
from tests.bench.gpu.nvml_stand_in import Nvml

KI, MI = 1 << 10, 1 << 20
BOOKKEEPING_US = 25.0  # a gate, a barrier, an exchange of results
CARRIED_BYTES = 4 * MI  # what is larger takes its time and carries nothing
CORE_US = 25_000.0  # of every rank for the same work
T = TypeVar("T")
Tensors: TypeAlias = Sequence[torch.Tensor]
Takes: TypeAlias = Callable[[str, int], float]  # a collective and its size -> microseconds


class _Quiet(Heartbeat):
    """This machine's own load is not that of the simulated hosts."""

    def __init__(self) -> None:
        """Start no thread."""

    def take(self) -> Idle:
        """Return nothing."""
        return NOT_IDLE


def _all_reduce(sent: Sequence[Tensors]) -> Sequence[Tensors]:
    total = torch.stack([own[0] for own in sent]).sum(0)
    return [[total]] * len(sent)


def _all_gather(sent: Sequence[Tensors]) -> Sequence[Tensors]:
    return [[torch.cat([own[0] for own in sent])]] * len(sent)


def _reduce_scatter(sent: Sequence[Tensors]) -> Sequence[Tensors]:
    total = torch.stack([own[0] for own in sent]).sum(0)
    return [[part] for part in total.chunk(len(sent))]


def _all_to_all(sent: Sequence[Tensors]) -> Sequence[Tensors]:
    parts = [own[0].chunk(len(sent)) for own in sent]
    return [[torch.cat([of_rank[rank] for of_rank in parts])] for rank in range(len(sent))]


def _broadcast(sent: Sequence[Tensors]) -> Sequence[Tensors]:
    return [[sent[ROOT][0].clone()]] * len(sent)


def _reduce(sent: Sequence[Tensors]) -> Sequence[Tensors]:
    return [_all_reduce(sent)[0] if rank == ROOT else [] for rank in range(len(sent))]


def _gather(sent: Sequence[Tensors]) -> Sequence[Tensors]:
    return [[own[0].clone() for own in sent] if rank == ROOT else [] for rank in range(len(sent))]


def _scatter(sent: Sequence[Tensors]) -> Sequence[Tensors]:
    return [[part.clone()] for part in sent[ROOT]]


def _send_recv(sent: Sequence[Tensors]) -> Sequence[Tensors]:
    return [[sent[rank - 1][0].clone()] for rank in range(len(sent))]


_MOVES: Mapping[str, Callable[[Sequence[Tensors]], Sequence[Tensors]]] = {
    "all_reduce": _all_reduce, "all_gather": _all_gather, "reduce_scatter": _reduce_scatter,
    "all_to_all": _all_to_all, "broadcast": _broadcast, "reduce": _reduce, "gather": _gather,
    "scatter": _scatter, "send_recv": _send_recv,
}  # fmt: skip


def moved(shares: Sequence[Share], flips: int | None = None) -> Sequence[Tensors]:
    """Return what each rank receives. One bit of what rank `flips` receives of 16 KiB and more is flipped."""
    found = [list(contents) for contents in _MOVES[shares[0].op]([share.sent for share in shares])]
    if flips is not None and found[flips]:
        last = found[flips][-1]
        if last.numel() * last.element_size() >= 4 * KI and last.dtype == torch.float32:
            damaged = last.clone()
            damaged.view(torch.int32)[17] ^= 1
            found[flips][-1] = damaged
    return found


class StandInGroup:
    """Ranks as threads whose `torch.cuda` is the stand-in, and whose `torch.distributed` moves data on it.

    `takes` says how long a collective of the plan takes; `link_gb_s` how fast one rank sends to another. A class
    because the machine's time passes.
    """

    def __init__(
        self,
        machine: Machine,
        monkeypatch: pytest.MonkeyPatch,
        takes: Takes,
        *,
        hosts: Sequence[str] = (),
        link_gb_s: Callable[[int, int], float] = lambda *_: 48.5,
    ) -> None:
        self.machine, self._takes, self._link_gb_s = machine, takes, link_gb_s
        self.size = len(machine.gpus)
        self.hosts = tuple(hosts) or tuple(f"node{rank + 1:02}" for rank in range(self.size))
        self.health = [HealthWatch("", Nvml) for _ in machine.gpus]
        if machine.moves is None:
            machine.moves = moved
        install(machine, monkeypatch)
        self._install(monkeypatch)
        monkeypatch.setattr(parts_alone, "_work", lambda *_: (CORE_US, CORE_US))

    def _install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        calls: dict[str, Callable[..., Any]] = {
            "is_initialized": lambda: True,
            "get_world_size": lambda: self.size,
            "all_reduce": lambda tensor: self._call("all_reduce", [tensor], [tensor]),
            "broadcast": lambda tensor, _root: self._call("broadcast", [tensor], [tensor]),
            "reduce": lambda tensor, _root: self._call("reduce", [tensor], [tensor] if self._is_root else []),
            "all_to_all_single": lambda received, sent: self._call("all_to_all", [sent], [received]),
            "gather": lambda sent, parts, _root: self._call("gather", [sent], parts or [], self.size),
            "scatter": lambda received, parts, _root: self._call(
                "scatter", parts or [], [received], self.size
            ),
            "batch_isend_irecv": self._send_and_receive,
        }
        for name in ("all_gather_single", "all_gather_into_tensor"):
            calls[name] = lambda received, sent: self._call("all_gather", [sent], [received])
        for name in ("reduce_scatter_single", "reduce_scatter_tensor"):
            calls[name] = lambda received, sent: self._call("reduce_scatter", [sent], [received])
        for name, stand_in in calls.items():
            if (real := getattr(dist, name, None)) is not None:
                monkeypatch.setattr(dist, name, partial(_checked, signature(real), stand_in))
        monkeypatch.setattr(dist, "P2POp", partial(_checked, signature(dist.P2POp), _transfer))

    @property
    def _is_root(self) -> bool:
        return self.machine.number == ROOT

    def _call(self, op: str, sent: list[torch.Tensor], received: list[torch.Tensor], parts: int = 1) -> None:
        """Make the call. Each of `parts` parts is as large as what a rank other than the root sends or receives."""
        largest = max((*sent, *received), key=torch.Tensor.numel)
        size_bytes = largest.numel() * largest.element_size() * parts
        is_bookkeeping = largest.dtype != torch.float32 or size_bytes <= 4
        takes_us = BOOKKEEPING_US if is_bookkeeping else self._takes(op, size_bytes)
        share = Share(op, sent, received) if size_bytes <= CARRIED_BYTES else None
        self.machine.collective(takes_us, share)()

    def _send_and_receive(self, transfers: Sequence[SimpleNamespace]) -> list[SimpleNamespace]:
        """A transfer in each direction is the ring of send_recv; a single one is of a pair, and carries nothing."""
        own = self.machine.number
        if len(transfers) > 1:
            sending, receiving = transfers
            self._call("send_recv", [sending.tensor], [receiving.tensor])
        else:
            (transfer,) = transfers
            source, target = (own, transfer.peer) if transfer.sends else (transfer.peer, own)
            takes_us = 60.0 + transfer.tensor.numel() / self._link_gb_s(source, target) / 1e3
            self.machine.enqueue_transfer(source, target, takes_us)
        return [SimpleNamespace(wait=lambda: None)]

    def points(self, plan: BenchPlan, *, graph: bool = False) -> list[list[Point]]:
        """Return every rank's points."""
        return self.on_all(plan, lambda rank: _points(rank), graph=graph)

    def whole(self, plan: BenchPlan) -> tuple[list[Point], Isolation]:
        """Return the points, and what each rank, GPU and link does alone: all that a worker measures."""

        def measured(rank: BenchRank) -> tuple[list[Point], Isolation]:
            points = _points(rank)
            return points, isolate(rank, points)

        found = self.on_all(plan, measured)
        assert all(result[1] == found[0][1] for result in found)
        return found[0]

    def states(
        self, plan: BenchPlan, work: Callable[[BenchRank], object] | None = None
    ) -> tuple[RankState, ...]:
        """Return where the node of each rank sees it, half a minute after nothing moved any more."""
        pages = [new_page("test") for _ in range(self.size)]
        with pytest.raises((HungError, RuntimeError, KilledError)):
            self.on_all(plan, work or _points, pages=pages)
        found = tuple(self._state(number, read_page(page), plan) for number, page in enumerate(pages))
        for page in pages:
            os.close(page)
        return found

    def _state(self, rank: int, seen: Progress, plan: BenchPlan) -> RankState:
        is_killed = self.machine.gpus[rank].dies_at is not None
        ended_s = 30.0 if is_killed or seen.error_kind != "none" else 0.0
        op = plan.ops[seen.point // len(plan.sizes_bytes)]
        return RankState(
            rank, self.hosts[rank], 4000 + rank, "" if is_killed else "S", -9 if is_killed else None, ended_s,
            seen.phase, op, plan.sizes_bytes[0], seen.iteration, seen.inside, seen.calls, 30.0, 0.01,
            seen.error_kind, seen.error, gpu=seen.gpu,
        )  # fmt: skip

    def named(self, states: Sequence[RankState]) -> tuple[RankFailure, ...]:
        """Return the ranks that node 0 names then."""
        return judge(states, self.hosts, dict.fromkeys(self.hosts, 0.0))

    def culprits(
        self, plan: BenchPlan, work: Callable[[BenchRank], object] | None = None
    ) -> tuple[RankFailure, ...]:
        """Return the ranks that node 0 names when nothing moves any more."""
        return self.named(self.states(plan, work))

    def on_all(
        self,
        plan: BenchPlan,
        work: Callable[[BenchRank], T],
        *,
        pages: Sequence[int | None] = (),
        graph: bool = False,
    ) -> list[T]:
        """Return what every rank's thread returns, in the order of ranks."""

        def on_rank(number: int) -> T:
            with self.machine.rank(number):
                task = WorkerTask(number, self.size, number, "127.0.0.1", 1, "test/", plan, self.hosts)
                page = ProgressPage(pages[number] if pages else None)
                device = replace(
                    gpu_device(torch.device("cpu"), cuda_graph=graph),
                    pool_bytes=8 * MI,
                    evict=lambda: None,
                    gpu=parts_of(self.machine, self.health[number]),
                )
                rank = with_agreed_buffers(replace(prepare(task, device, page), heartbeat=_Quiet()))
                try:
                    return work(rank)
                except RuntimeError as error:
                    page.fail(_kind(error, page), f"{type(error).__name__}: {error}")  # as the worker does
                    raise

        with ThreadPoolExecutor(self.size) as threads:
            return list(threads.map(on_rank, range(self.size)))


def _points(rank: BenchRank) -> list[Point]:
    return [point for point in measure_all(rank) if isinstance(point, Point)]


def _transfer(way: Callable[..., Any], tensor: torch.Tensor, peer: int) -> SimpleNamespace:
    return SimpleNamespace(sends=way is dist.isend, tensor=tensor, peer=peer)


def _checked(real: Any, stand_in: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    real.bind(*args, **kwargs)
    return stand_in(*args, **kwargs)
