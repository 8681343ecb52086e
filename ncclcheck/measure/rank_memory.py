"""What a plan costs before it starts: the memory of one rank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from ncclcheck.measure.busbw import Sizing
from ncclcheck.model.bench import BenchPlan

POOL_BUFFERS = 32
_PROCESS_BYTES = 400 << 20  # a Python process with torch imported and a process group: 250 to 400 MiB seen


class Storage(Struct, frozen=True):
    """Elements of the two storages that every point of a plan is cut from."""

    send_count: int
    recv_count: int


def pool_buffers(sizing: Sizing, element_bytes: int, pool_bytes: int, least: int = 1) -> int:
    """Return how many buffers a batch of iterations rotates through: `least` to 32, together `pool_bytes`."""
    buffer_bytes = max(sizing.send_count, sizing.recv_count) * element_bytes
    return max(least, min(POOL_BUFFERS, pool_bytes // buffer_bytes))


def storage(
    sizings: Sequence[tuple[Sizing, bool]], element_bytes: int, pool_bytes: int, least: int = 1
) -> Storage:
    """Return the smallest storages that hold every point's pool.

    Each sizing comes with "is in place" (sends from recv).
    """
    send = recv = 0
    for sizing, in_place in sizings:
        buffers = pool_buffers(sizing, element_bytes, pool_bytes, least)
        recv = max(recv, buffers * sizing.recv_count)
        send = max(send, 0 if in_place else buffers * sizing.send_count)
    return Storage(send, recv)


def memory_bytes(sizings: Sequence[tuple[Sizing, bool]], element_bytes: int, pool_bytes: int) -> int:
    """Return the memory that one rank needs: process, storages, and one more copy of the largest buffer.

    The copy: torch's gloo all_gather and gather collect in a flat tensor of their own first (torch
    `ProcessGroupGloo.cpp`, `newLikeFlat`), and its reduce_scatter adds up in a copy of what is sent (seen with 2.13).
    """
    need = storage(sizings, element_bytes, pool_bytes)
    copied = (max(sizing.send_count, sizing.recv_count) for sizing, in_place in sizings if not in_place)
    largest = max(copied, default=0)
    return _PROCESS_BYTES + (need.send_count + need.recv_count + largest) * element_bytes


def refusals(plan: BenchPlan, refused: Mapping[int, str]) -> tuple[str, ...]:
    """Return what the backend does not do at all, one sentence per reason. `refused`: number of a point -> its words.

    "gloo here cannot do all_reduce, reduce of float8_e5m2: Invalid scalar type"
    """
    ops: dict[str, dict[str, None]] = {}
    for number, why in refused.items():
        ops.setdefault(why, {})[plan.ops[number // len(plan.sizes_bytes)]] = None
    return tuple(
        f"{plan.backend} here cannot do {', '.join(ops_refused)} of {plan.dtype}: {why}"
        for why, ops_refused in ops.items()
    )
