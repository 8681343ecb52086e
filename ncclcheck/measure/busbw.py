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


def whole_buffer(size_bytes: int, element_bytes: int, _world_size: int) -> Sizing:
    """Every rank sends and receives the whole size (nccl-tests 2.19 `src/all_reduce.cu`, AllReduceGetCollByteCount).

    A size below one element becomes one element: nothing is never measured.
    """
    count = max(1, size_bytes // element_bytes)
    return Sizing(count, count, count, count * element_bytes)


def gathered_parts(size_bytes: int, element_bytes: int, world_size: int) -> Sizing:
    """The size is the total received; each rank sends its part of it, cut down to a multiple of 16 bytes.

    nccl-tests 2.19 `src/all_gather.cu`, AllGatherGetCollByteCount: `base = (count/nranks) & -(16/eltSize)`. Where that
    gives nothing (8 bytes over two ranks) nccl-tests prints a row of size 0; here the part is 16 bytes.
    """
    aligned = max(1, _ALIGNMENT_BYTES // element_bytes)
    part = max(aligned, size_bytes // element_bytes // world_size // aligned * aligned)
    return Sizing(part, part * world_size, part, part * world_size * element_bytes)


def reduced_and_spread(world_size: int) -> float:
    """2(n-1)/n: each byte crosses a link on the way to its sum and again on the way back (`AllReduceGetBw`)."""
    return 2 * (world_size - 1) / world_size


def received_from_others(world_size: int) -> float:
    """(n-1)/n: of the total, a rank receives all but its own part (`AllGatherGetBw`)."""
    return (world_size - 1) / world_size


def algbw_gb_s(size_bytes: int, time_us: float) -> float:
    """Size over time in GB/s, 1e9 bytes (`baseBw` in the GetBw functions of nccl-tests)."""
    return size_bytes / 1e3 / time_us
