"""The work by which GPUs are compared: a matrix multiplication, a copy within memory, and a copy from the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct

from ncclcheck.bench.gpu.gpu_health import HealthWatch

if TYPE_CHECKING:
    import torch
    from torch import Tensor

_SIDE, _SMALL_SIDE = 4096, 512  # of the matrices; the small one where the large one would take too long
_LARGE_BELOW_MS, _TRIES = (
    0.5,
    3,
)  # the large one is 512 times as much work; the best try, since a host may be busy
_HOST_BYTES = 32 << 20


class Work(Struct, frozen=True):
    """A piece of work that `call` enqueues on the GPU, and how much it is: operations, or bytes."""

    call: Callable[[], object]
    amount: float


class GpuParts(Struct, frozen=True):
    """A GPU as it is compared with others: its model, the pieces of work, and what NVML says of it.

    `scratch`: bytes of its memory that nobody needs after the collectives. `multiply` gets a function that returns the
    milliseconds of a piece of work.
    """

    model: str
    multiply: Callable[[Callable[[Work], float]], Work]
    copy_within: Callable[[], Work]
    copy_from_host: Callable[[], Work]
    health: HealthWatch
    scratch: Tensor


def gpu_parts(device: torch.device, scratch: torch.Tensor, health: HealthWatch) -> GpuParts:
    """Return the parts of the current GPU. `scratch` is memory on it that nobody needs after the collectives."""
    import torch

    def multiply(took_ms: Callable[[Work], float]) -> Work:
        small = _multiplication(scratch, _SMALL_SIDE)
        small_ms = min(took_ms(small) for _ in range(_TRIES))
        return _multiplication(scratch, _SIDE) if small_ms < _LARGE_BELOW_MS else small

    def copy_within() -> Work:
        half = scratch.numel() // 2
        return Work(lambda: scratch[:half].copy_(scratch[half : 2 * half]), half)

    def copy_from_host() -> Work:
        pinned = torch.ones(min(_HOST_BYTES, scratch.numel()), dtype=torch.uint8).pin_memory()
        target = scratch[: pinned.numel()]
        return Work(lambda: target.copy_(pinned, non_blocking=True), pinned.numel())

    name = torch.cuda.get_device_name(device)
    return GpuParts(name, multiply, copy_within, copy_from_host, health, scratch)


def _multiplication(scratch: torch.Tensor, side: int) -> Work:
    """Return the product of two matrices of random numbers: zeros take less power, and would hide a power limit."""
    import torch

    matrices = scratch[: 3 * side * side * 2].view(torch.float16).view(3, side, side)
    matrices.normal_()
    return Work(lambda: torch.mm(matrices[0], matrices[1], out=matrices[2]), 2.0 * side**3)
