"""Element counts, sizes and bus bandwidth of collectives, defined as nccl-tests defines them."""

from __future__ import annotations

from msgspec import Struct

_ALIGNMENT_BYTES = 16


class Sizing(Struct, frozen=True):
    """Elements of one call: what a rank sends and receives, the count that is printed, and the size in bytes."""

    send_count: int
    recv_count: int
    count: int
    size_bytes: int


NOTHING = Sizing(0, 0, 0, 0)


def whole_buffer(size_bytes: int, element_bytes: int, _world_size: int) -> Sizing:
    """Take the size as what every rank sends and receives.

    nccl-tests 2.19, GetCollByteCount in `src/all_reduce.cu`, `broadcast.cu`, `reduce.cu` and `sendrecv.cu`. A size
    below one element becomes one element: nothing is never measured.
    """
    count = max(1, size_bytes // element_bytes)
    return Sizing(count, count, count, count * element_bytes)


def gathered_parts(size_bytes: int, element_bytes: int, world_size: int) -> Sizing:
    """Take the size as the total received; each rank sends its part of it (`src/all_gather.cu`, `src/gather.cu`)."""
    part = _part(size_bytes, element_bytes, world_size)
    return Sizing(part, part * world_size, part, part * world_size * element_bytes)


def spread_parts(size_bytes: int, element_bytes: int, world_size: int) -> Sizing:
    """Take the size as the total sent.

    Each rank receives its part of it (`src/reduce_scatter.cu`, `src/scatter.cu`).
    """
    part = _part(size_bytes, element_bytes, world_size)
    return Sizing(part * world_size, part, part, part * world_size * element_bytes)


def exchanged_parts(size_bytes: int, element_bytes: int, world_size: int) -> Sizing:
    """Take the size as what a rank sends to all and receives from all, one part for each (`src/alltoall.cu`)."""
    part = _part(size_bytes, element_bytes, world_size)
    return Sizing(part * world_size, part * world_size, part, part * world_size * element_bytes)


def _part(size_bytes: int, element_bytes: int, world_size: int) -> int:
    """Return the elements of one rank's part, cut down to a multiple of 16 bytes.

    nccl-tests 2.19 `src/all_gather.cu`, AllGatherGetCollByteCount, and alike in the other four:
    `(count/nranks) & ~(16/eltSize - 1)`. Where that gives nothing (8 bytes over two ranks) nccl-tests prints a row of
    size 0; here the part is 16 bytes.
    """
    aligned = max(1, _ALIGNMENT_BYTES // element_bytes)
    return max(aligned, size_bytes // element_bytes // world_size // aligned * aligned)


def reduced_and_spread(world_size: int) -> float:
    """Return 2(n-1)/n: each byte crosses a link on the way to its sum and again on the way back (`AllReduceGetBw`)."""
    return 2 * (world_size - 1) / world_size


def all_but_own_part(world_size: int) -> float:
    """Return (n-1)/n: of the total, a rank's own part crosses no link.

    GetBw in nccl-tests' `all_gather.cu`, `reduce_scatter.cu`, `alltoall.cu`, `gather.cu` and `scatter.cu`.
    """
    return (world_size - 1) / world_size


def once(_world_size: int) -> float:
    """Return 1: every byte passes the busiest link once (GetBw in `broadcast.cu`, `reduce.cu`, `sendrecv.cu`)."""
    return 1.0


def algbw_gb_s(size_bytes: int, time_us: float) -> float:
    """Return size over time in GB/s, 1e9 bytes (`baseBw` in the GetBw functions of nccl-tests)."""
    return size_bytes / 1e3 / time_us
