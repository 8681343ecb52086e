"""A stream of a pair: parts without a pause from one end to the other, timed and verified by the receiver.

The receiver says of which kind the next part is while one is on its way, so the path is never idle. Together the
counted parts begin when all pairs of the round send, and none stops before all have counted: only so do the rates of
all add up to what a trunk carries.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import count
from typing import TYPE_CHECKING

from msgspec import Struct

from ncclcheck.bench.pairs.pair_barrier import PairBarrier
from ncclcheck.bench.pairs.pair_task import PairTask

if TYPE_CHECKING:
    import torch
    from torch import Tensor

LEAST_BYTES = 1 << 16
PERIOD = 251  # of the bytes, a prime: no part of a buffer equals another
MOST_COUNTED = 9  # parts of a stream: all of them lie in memory until they are verified
MOST_COUNTED_BYTES = 1 << 28  # of parts beyond those that a test wants
LOAD_PARTS = 4  # of a transfer: so small are the parts that are only load
OVER, WHOLE, COUNTED, LOAD = 0, 1, 2, 3  # kinds of the next part; `WHOLE`: as large as a counted one


class End(Struct, frozen=True):
    """One end of a pair or a ring: its task, its device, and a callback that reports each advance to the agent."""

    task: PairTask
    device: torch.device
    moved: Callable[[], object]


class Stream(Struct, frozen=True):
    """How long each counted part took, in seconds, and how many bytes were wrong; nothing of both to the sender."""

    took_s: tuple[float, ...] = ()
    wrong: int = 0


class StreamDemand(Struct, frozen=True):
    """How many parts are counted at most, and of which kind each next part is: asked for while one is on its way."""

    parts: int
    kinds: Iterator[int]


def stream(end: End, sender: int, size_bytes: int, demand: StreamDemand) -> Stream:
    """Send parts from `sender` to the other rank, which asks for them.

    A counted part is timed from the end of the part before. So none begins after a pause, in which a queue or a shaper
    would save up what it lets through at once.
    """
    import torch

    answer = torch.zeros(1, dtype=torch.uint8, device=end.device)
    whole = pattern(size_bytes, sender, end.device)
    load = torch.zeros(max(LEAST_BYTES, size_bytes // LOAD_PARTS), dtype=torch.uint8, device=end.device)
    if end.task.rank == sender:
        exchange(end, answer, 1 - sender)
        while kind := int(answer.item()):
            _exchange_both(end, sender, load if kind == LOAD else whole, answer)
            end.moved()
        return Stream()
    first = torch.zeros_like(whole)
    counted = [torch.zeros_like(whole) for _ in range(demand.parts)]
    took_s: list[float] = []
    kind = next(demand.kinds)
    exchange(end, answer.fill_(kind), 1 - sender)
    begin = time.perf_counter()
    while kind:
        part = {LOAD: load, WHOLE: first}.get(kind, counted[min(len(took_s), demand.parts - 1)])
        following = next(demand.kinds)
        _exchange_both(end, sender, part, answer.fill_(following))
        now = time.perf_counter()
        if kind == COUNTED:
            took_s.append(now - begin)
        begin, kind = now, following
        end.moved()
    return Stream(tuple(took_s), wrong_bytes(end, counted[: len(took_s)], whole))


def alone(parts: int) -> StreamDemand:
    """Return so many counted parts after a first one, which takes what a shaper saved up."""
    return StreamDemand(parts, iter((WHOLE, *[COUNTED] * parts, OVER)))


def together(barrier: PairBarrier, direction: str, parts: int, size_bytes: int) -> StreamDemand:
    """Return at least so many counted parts, in the time in which all pairs of the round count theirs.

    Before and after them there is load as long as another pair needs it.
    """
    most = max(parts, min(MOST_COUNTED, MOST_COUNTED_BYTES // size_bytes))
    return StreamDemand(most, _kinds_together(barrier, direction, (parts, most)))


def _kinds_together(barrier: PairBarrier, direction: str, counted: tuple[int, int]) -> Iterator[int]:
    least, most = counted
    sends, has_counted = f"{direction}/sends", f"{direction}/counted"
    yield LOAD
    begin = time.monotonic()
    yield LOAD
    barrier.has_come(sends)
    while True:
        now = time.monotonic()
        load_s, begin = now - begin, now  # of the last part that was load
        if barrier.is_complete(sends):
            break
        yield LOAD
    yield COUNTED
    # Its size was found before the others sent: here one part takes as long as several should. All would wait for more.
    is_slow = load_s * LOAD_PARTS > least * barrier.transfer_s
    yield from [COUNTED] * (0 if is_slow else least - 1)
    # Who is fast counts on: else its rate would be that of a shorter time, in which it had more than its share.
    further = 0 if is_slow else most - least
    yield COUNTED if further else LOAD
    barrier.has_come(has_counted)
    for number in count(1):
        if barrier.is_complete(has_counted):
            break
        yield COUNTED if number < further else LOAD
    yield OVER


def pattern(size_bytes: int, sender: int, device: torch.device) -> Tensor:
    """Return bytes that differ by place and sender."""
    import torch

    table = (torch.arange(PERIOD, device=device) + sender * 7).to(torch.uint8)
    return table.repeat(size_bytes // PERIOD + 1)[:size_bytes].contiguous()


def wrong_bytes(end: End, buffers: list[Tensor], expected: Tensor) -> int:
    """Return how many bytes are not those expected: counted only where some are, which takes six times as long."""
    import torch

    wrong = 0
    for buffer in buffers:
        if not torch.equal(buffer, expected):
            wrong += int((buffer != expected).sum().item())
        end.moved()
    return wrong


def exchange(end: End, buffer: Tensor, sender: int) -> None:
    """Send the buffer from `sender` to the other rank, and wait for it."""
    import torch.distributed as dist

    operation, peer = (dist.isend, 1 - sender) if end.task.rank == sender else (dist.irecv, sender)
    for work in dist.batch_isend_irecv([dist.P2POp(operation, buffer, peer)]):
        work.wait()
    synchronize(end.device)


def _exchange_both(end: End, sender: int, part: Tensor, answer: Tensor) -> None:
    """Send the part from `sender` to the other rank and the answer back, at the same time."""
    import torch.distributed as dist

    peer = 1 - end.task.rank
    there, back = (dist.isend, dist.irecv) if end.task.rank == sender else (dist.irecv, dist.isend)
    for work in dist.batch_isend_irecv([dist.P2POp(there, part, peer), dist.P2POp(back, answer, peer)]):
        work.wait()
    synchronize(end.device)


def synchronize(device: torch.device) -> None:
    """Wait until a GPU has done all that it was given."""
    import torch

    if device.type == "cuda":
        torch.cuda.synchronize(device)
