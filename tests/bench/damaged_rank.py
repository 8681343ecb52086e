"""A real group whose ranks measure every collective while somebody damages its data; run by test_damage.py.

    python -m tests.bench.damaged_rank WORLD_SIZE

Rank 0 writes, for each kind of damage, its name and the points as JSON lines. The ranks are forks of one process that
has imported torch, which is what takes the time.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import traceback
from collections.abc import Callable
from datetime import timedelta

from msgspec.structs import replace

from ncclcheck.bench.gpu.device import Call, Calls, open_device
from ncclcheck.bench.point import BenchRank, measure_all, prepare
from ncclcheck.bench.progress_page import ProgressPage
from ncclcheck.bench.task import WorkerTask
from ncclcheck.exchange.store.torch_versions import make_store
from ncclcheck.measure.collectives import COLLECTIVES, Collective, RankContext
from ncclcheck.model.bench import BenchPlan
from ncclcheck.model.codec import encode

SIZE, ITERATIONS = 48 << 10, 2
PLAN = BenchPlan("gloo", tuple(COLLECTIVES), (SIZE,), "float32", 1, ITERATIONS, 60.0, verify=True)
DAMAGED_ITERATION = 2
DAMAGED_ELEMENT = 100
Wrap = Callable[[Collective, RankContext, "object", "object", Call], Call]


def nothing(_collective: Collective, _seat: RankContext, _send: object, _recv: object, call: Call) -> Call:
    """The call as it is."""
    return call


def flipped_bit(collective: Collective, seat: RankContext, _send: object, recv: object, call: Call) -> Call:
    """After the call one bit differs, at the last rank that receives something."""
    import torch

    receivers = [
        rank for rank in range(seat.world_size) if collective.receives(RankContext(rank, seat.world_size))
    ]

    def damaged() -> None:
        call()
        if seat.rank == receivers[-1]:
            recv.view(torch.int32)[DAMAGED_ELEMENT] ^= 1 << 20  # type: ignore[attr-defined]

    return damaged


def swapped_chunks(
    _collective: Collective, seat: RankContext, _send: object, recv: object, call: Call
) -> Call:
    """After the call the first two parts of each rank's receive buffer have changed places."""
    import torch

    def damaged() -> None:
        call()
        first, second, *rest = recv.chunk(seat.world_size)  # type: ignore[attr-defined]
        recv.copy_(torch.cat((second, first, *rest)))  # type: ignore[attr-defined]

    return damaged


def skipped_sender(
    _collective: Collective, seat: RankContext, send: object, _recv: object, call: Call
) -> Call:
    """What rank 1 gives is lost: zeros arrive in its place."""

    def damaged() -> None:
        if seat.rank == 1:
            send.zero_()  # type: ignore[attr-defined]
        call()

    return damaged


def skipped_receiver(
    _collective: Collective, seat: RankContext, _send: object, recv: object, call: Call
) -> Call:
    """Nothing arrives at rank 1, or at rank 0 where that is the only one to receive: the buffer is as before."""

    def damaged() -> None:
        before = recv.clone()  # type: ignore[attr-defined]
        call()
        if seat.rank <= 1:
            recv.copy_(before)  # type: ignore[attr-defined]

    return damaged


DAMAGES: dict[str, Wrap] = {
    "nothing": nothing,
    "flipped bit": flipped_bit,
    "swapped chunks": swapped_chunks,
    "skipped sender": skipped_sender,
    "skipped receiver": skipped_receiver,
}


def measure(rank: BenchRank, wrap: Wrap) -> list[object]:
    """Every point of the plan, with the calls of one iteration wrapped."""
    honest, place = rank.device, RankContext(rank.task.rank, rank.task.world_size)
    number = -1

    def time_calls(calls: Calls, progress: ProgressPage) -> list[float]:
        nonlocal number
        number += calls[0][0] == 0  # the first call of the next collective
        collective = COLLECTIVES[PLAN.ops[number]]
        sizing = collective.sizing(SIZE, 4, place.world_size)
        damaged = []
        for slot, (iteration, call) in enumerate(calls):
            recv = rank.recv[slot * sizing.recv_count : (slot + 1) * sizing.recv_count]
            send = rank.send[slot * sizing.send_count : (slot + 1) * sizing.send_count]
            own = wrap(collective, place, recv if collective.in_place else send, recv, call)
            damaged.append((iteration, own if iteration == DAMAGED_ITERATION else call))
        return honest.time_calls(damaged, progress)

    return list(measure_all(replace(rank, device=replace(honest, time_calls=time_calls))))


def measure_as(rank: int, world_size: int, listener: socket.socket) -> None:
    """Join the group, whose store rank 0 serves, and measure under every kind of damage."""
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    port = listener.getsockname()[1]
    served = listener.detach() if rank == 0 else None
    store = make_store(
        dist.TCPStore, "127.0.0.1", port, is_master=rank == 0, master_listen_fd=served, wait_for_workers=False
    )
    dist.init_process_group(
        "gloo", store=store, rank=rank, world_size=world_size, timeout=timedelta(seconds=60)
    )
    hosts = tuple(f"node{number}" for number in range(world_size))
    task = WorkerTask(rank, world_size, rank, "127.0.0.1", port, "", PLAN, hosts)
    ready = prepare(task, open_device("gloo", rank), ProgressPage(None))
    for name, wrap in DAMAGES.items():
        points = measure(ready, wrap)
        if rank == 0:
            sys.stdout.write(json.dumps([name, [json.loads(encode(point)) for point in points]]) + "\n")
    sys.stdout.flush()
    dist.barrier()


def main() -> int:
    """How many of the ranks did not end well."""
    import torch.distributed as dist

    world_size = int(sys.argv[1])
    assert dist.is_available()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        children = [fork(rank, world_size, listener) for rank in range(world_size)]
    return sum(os.waitpid(child, 0)[1] != 0 for child in children)


def fork(rank: int, world_size: int, listener: socket.socket) -> int:
    """The process that is the rank."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            measure_as(rank, world_size, listener)
            status = 0
        except Exception:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)
    return child


if __name__ == "__main__":
    sys.exit(main())
