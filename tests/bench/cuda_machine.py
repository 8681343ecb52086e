"""The GPUs under the stand-in of `torch.cuda`: ranks with a host clock and one in-order stream, in a time of their own.

Each rank is a thread, and microseconds pass only here. A kernel starts when it was enqueued and the one before has
ended; a collective ends when it has started on all ranks, and its time is over. What it moves lies in the buffers once
the host has seen that end, and not before.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from msgspec import Struct

REAL_S = 120.0  # for another rank's thread to do its part
PATIENCE_US, PATIENT_STEP_US = 10e6, 0.25e6  # of a host that waits for what will never come
ECC = "CUDA error: uncorrectable ECC error encountered"
# ProcessGroupNCCL's words for ncclRemoteError (torch `NCCLUtils.cpp`, 2.13)
REMOTE = (
    "NCCL error: remote process exited or there was a network error, NCCL version 2.27.7\n"
    "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely."
)


class HungError(Exception):
    """The host waits for a GPU that will never be done."""


class KilledError(BaseException):
    """The process of this rank is killed here."""


class Gpu(Struct):
    """One rank: its clock, what its host takes for a launch, and when it leaves a collective later than the first."""

    clock_mhz: float = 1980.0
    launch_us: float = 5.0
    leaves_late_us: float = 0.0
    host_us: float = 0.0
    wakes_late_us: float = 0.0  # a host that sleeps until an event sees it so long after
    stalls_at: int | None = None  # number of the collective that never starts here
    stalls_in_transfers: bool = False  # a transfer to or from another GPU never starts here
    spins_forever_at: int | None = None  # number of the collective before which a spin of this GPU never ends
    fails_at: int | None = None  # number of the collective at which this GPU has an error
    dies_at: int | None = None  # number of the collective in which the rank's process is killed
    free_bytes: int = 64 << 30
    memory_gb_s: float = 2500.0
    pcie_gb_s: float = 55.0
    tflop_s: float = 700.0  # at 1980 MHz


NOMINAL_MHZ = 1980.0


class Kernel:
    """What was enqueued: a spin, an event, a collective, or the `pair`'s transfer of that number."""

    def __init__(
        self,
        enqueued_us: float,
        spin_us: float = 0.0,
        collective: int | None = None,
        pair: tuple[int, int, int] | None = None,
    ) -> None:
        self.enqueued_us, self.spin_us, self.collective, self.pair = enqueued_us, spin_us, collective, pair
        self.began_us: float | None = None
        self.ended_us: float | None = None


class Share(Struct):
    """What one rank gives to a collective, and where it wants what comes out of it."""

    op: str
    sent: list[torch.Tensor]
    received: list[torch.Tensor]


# The shares of all ranks, by rank -> what each of them receives
Moves = Callable[[Sequence[Share]], Sequence[Sequence[torch.Tensor]]]


class Machine:
    """The GPUs of all ranks. A class because its time passes.

    `moves` says what a collective does with the data. Where `peers_fail`, a rank whose peer was killed gets NCCL's
    error from its next call; else its calls never end.
    """

    def __init__(
        self,
        gpus: Sequence[Gpu],
        event_us: float = 1.0,
        moves: Moves | None = None,
        *,
        peers_fail: bool = False,
    ) -> None:
        self.gpus = list(gpus)
        self.event_us = event_us
        self.moves, self.peers_fail = moves, peers_fail
        self._awaited: dict[int, Kernel] = {}  # by rank, what its host waits for
        self.replays = [0 for _ in gpus]  # of graphs
        self._shares: dict[int, dict[int, tuple[Share, Kernel]]] = {}  # by collective and rank
        self._moved: list[list[tuple[Kernel, Sequence[torch.Tensor], Sequence[torch.Tensor]]]] = [
            [] for _ in gpus
        ]
        self._changed = threading.Condition()
        self._here = threading.local()
        self._streams: list[list[Kernel]] = [[] for _ in gpus]
        self._done = [0 for _ in gpus]
        self._free_us = [0.0 for _ in gpus]
        self._starts: list[dict[int, float]] = []
        self._durations_us: list[float] = []
        self._entered = [0 for _ in gpus]
        self._hung = [False for _ in gpus]
        self._failed: set[int] = set()  # ranks whose GPU had an error: they come to nothing any more
        self._transfers: dict[tuple[int, int], dict[int, int]] = {}  # (from, to) -> rank -> how many
        self._pair_starts: dict[tuple[int, int, int], dict[int, float]] = {}

    @contextmanager
    def rank(self, number: int) -> Iterator[None]:
        """This thread is that rank."""
        self._here.rank, self._here.graph, self._here.side, self._here.waited_us = number, None, False, 0.0
        yield

    @property
    def number(self) -> int:
        """The rank of this thread."""
        rank: int = self._here.rank
        return rank

    @property
    def gpu(self) -> Gpu:
        """The GPU of this thread."""
        return self.gpus[self.number]

    def collective(self, duration_us: float, share: Share | None = None) -> Callable[[], None]:
        """Return a call that takes so long from when all ranks are in it."""
        return lambda: self._enqueue_collective(duration_us, share)

    def _enqueue_collective(self, duration_us: float, share: Share | None) -> None:
        if self._here.graph is not None:
            self._here.graph.append((duration_us, share))
            return
        with self._changed:
            rank = self._here.rank
            number, self._entered[rank] = self._entered[rank], self._entered[rank] + 1
            self._lose_ranks(number)
            if number == len(self._starts):
                self._starts.append({})
                self._durations_us.append(duration_us)
            assert self._durations_us[number] == duration_us, "the ranks are out of step"
            kernel = Kernel(self.gpu.host_us, collective=number)
            if share is not None:
                self._join(number, share, kernel)
            self._enqueue(kernel)

    def _lose_ranks(self, number: int) -> None:
        """Kill this rank, if it dies in that collective; let it fail, if another one died in an earlier one."""
        if self.gpu.dies_at is not None and number >= self.gpu.dies_at:
            self._failed.add(self.number)
            self._advance()
            self._wake()
            raise KilledError
        if self.peers_fail and any(gpu.dies_at is not None and number > gpu.dies_at for gpu in self.gpus):
            raise RuntimeError(REMOTE)

    def _join(self, number: int, share: Share, kernel: Kernel) -> None:
        """Give this rank's share; what the last one completes is on its way to all of them."""
        joined = self._shares.setdefault(number, {})
        joined[self.number] = share, kernel
        if len(joined) < len(self.gpus) or self.moves is None:
            return
        shares = [joined[rank][0] for rank in range(len(self.gpus))]
        assert len({own.op for own in shares}) == 1, "the ranks are out of step"
        for rank, contents in enumerate(self.moves(shares)):
            self._moved[rank].append((joined[rank][1], shares[rank].received, contents))
        del self._shares[number]

    def _land(self) -> None:
        """Put what this rank's collectives moved into its buffers, as far as they have ended by its host's clock."""
        moved = self._moved[self.number]
        while moved and (ended_us := moved[0][0].ended_us) is not None and ended_us <= self.gpu.host_us:
            _, buffers, contents = moved.pop(0)
            for buffer, content in zip(buffers, contents, strict=True):
                buffer.copy_(content.view_as(buffer))

    @contextmanager
    def on_stream(self, _stream: object) -> Iterator[None]:
        """Events are recorded beside what is enqueued on the one stream that is modelled."""
        self._here.side = True
        yield
        self._here.side = False

    def enqueue_transfer(self, source: int, target: int, takes_us: float) -> None:
        """Send or receive, whichever this rank does; both ends are done when both have come and the time is over."""
        with self._changed:
            counts = self._transfers.setdefault((source, target), {})
            number = counts[self.number] = counts.get(self.number, -1) + 1
            self._enqueue(Kernel(self.gpu.host_us, takes_us, pair=(source, target, number)))

    def enqueue_spin(self, spin_us: float) -> None:
        """Hold the stream for so long."""
        with self._changed:
            forever = self.gpu.spins_forever_at
            if forever is not None and self._entered[self.number] >= forever:
                spin_us, self._hung[self.number] = math.inf, True
            self._enqueue(Kernel(self.gpu.host_us, spin_us))

    def enqueue_event(self) -> Kernel:
        """Return the event: its time is when the stream came to it; then the stream is busy with it."""
        with self._changed:
            event = Kernel(self.gpu.host_us, self.event_us)
            if self._here.side:
                event.began_us = math.inf if self._hung[self.number] else self.gpu.host_us
            else:
                self._enqueue(event)
            return event

    def _enqueue(self, kernel: Kernel) -> None:
        gpu = self.gpu
        if gpu.fails_at is not None and self._entered[self._here.rank] > gpu.fails_at:
            self._failed.add(self.number)
            self._advance()
            self._wake()
            raise RuntimeError(ECC)
        gpu.host_us += gpu.launch_us
        self._streams[self._here.rank].append(kernel)
        self._advance()
        self._wake()

    def _wake(self) -> None:
        """Wake the hosts that wait, where the stream of one has come to what it waits for."""
        if any(kernel.began_us is not None for kernel in self._awaited.values()):
            self._changed.notify_all()

    def _advance(self) -> None:
        moved = True
        while moved:
            moved = any(self._advance_stream(rank) for rank in range(len(self.gpus)))

    def _advance_stream(self, rank: int) -> bool:
        moved = False
        while self._done[rank] < len(self._streams[rank]):
            kernel = self._streams[rank][self._done[rank]]
            if kernel.began_us is None:
                kernel.began_us = max(self._free_us[rank], kernel.enqueued_us)
                if kernel.collective is not None:
                    stalls = self.gpus[rank].stalls_at
                    stalled = stalls is not None and kernel.collective >= stalls
                    self._hung[rank] = self._hung[rank] or stalled
                    self._starts[kernel.collective][rank] = math.inf if stalled else kernel.began_us
                if kernel.pair is not None:
                    stalled = self.gpus[rank].stalls_in_transfers
                    self._hung[rank] = self._hung[rank] or stalled
                    starts = self._pair_starts.setdefault(kernel.pair, {})
                    starts[rank] = math.inf if stalled else kernel.began_us
                moved = True
            ended_us = self._end_of(kernel, rank)
            if ended_us is None:
                return moved
            kernel.ended_us = self._free_us[rank] = ended_us
            self._done[rank] += 1
            moved = True
        return moved

    def _end_of(self, kernel: Kernel, rank: int) -> float | None:
        assert kernel.began_us is not None
        if kernel.pair is not None:
            both = self._pair_starts[kernel.pair]
            return max(both.values()) + kernel.spin_us if len(both) > 1 else None
        if kernel.collective is None:
            return kernel.began_us + kernel.spin_us
        starts = self._starts[kernel.collective]
        if len(starts) < len(self.gpus):
            return math.inf if self._failed - starts.keys() else None
        late_us = self.gpus[rank].leaves_late_us
        return max(starts.values()) + self._durations_us[kernel.collective] + late_us

    def reached_us(self, kernel: Kernel) -> float:
        """Return when the stream came to it; waits for what other ranks have to enqueue first."""
        with self._changed:
            if kernel.began_us is None:
                self._awaited[self.number] = kernel
                is_reached = self._changed.wait_for(lambda: kernel.began_us is not None, REAL_S)
                del self._awaited[self.number]
                assert is_reached, "a rank did not come"
            assert kernel.began_us is not None
            return kernel.began_us

    @property
    def awaited_us(self) -> float:
        """When the event comes for which this thread's host asked last."""
        return float(self._here.awaited_us)

    def is_reached(self, moment_us: float) -> bool:
        """Return whether that is over on this thread's host."""
        self._here.awaited_us = moment_us
        with self._changed:
            self._land()
        return moment_us <= self.gpu.host_us

    def synchronize(self) -> None:
        """The host has waited for all that was enqueued."""
        moment_us = self.reached_us(self.enqueue_event())
        self.wait_until(moment_us)
        while math.isinf(moment_us):
            self.wait_until(moment_us)

    def wait_until(self, moment_us: float) -> None:
        """The host has done nothing until then."""
        if math.isinf(moment_us):
            self._here.waited_us += PATIENT_STEP_US
            self.gpu.host_us += PATIENT_STEP_US
            if self._here.waited_us > PATIENCE_US:
                with self._changed:
                    self._failed.add(self.number)  # it comes to nothing any more, for which others then wait
                    self._advance()
                    self._wake()
                raise HungError
        else:
            self.gpu.host_us = max(self.gpu.host_us, moment_us)

    def capture(self, into: list[tuple[float, Share | None]] | None) -> None:
        """Collectives go to the graph instead of the stream, until None."""
        self._here.graph = into
