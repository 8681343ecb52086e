"""Gathers a tensor, or a small document, of every rank, for what the ranks tell each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ncclcheck.measure.collectives import gather_into

if TYPE_CHECKING:
    from torch import Tensor

    from ncclcheck.bench.gpu.device import Device
    from ncclcheck.bench.progress_page import ProgressPage

DOCUMENT_BYTES = 1024  # of each rank, whatever it says: all ranks must gather the same number of bytes


def all_gather(send: Tensor, recv: Tensor) -> None:
    """Fill `recv` with the `send` of every rank, in the order of ranks."""
    import torch.distributed as dist

    gather_into(dist)(recv, send)


def gather_documents(
    document: bytes, world_size: int, device: Device, progress: ProgressPage
) -> Sequence[bytes]:
    """Return every rank's document, by rank; b"" where one is longer than `DOCUMENT_BYTES`. None holds a zero byte.

    The device is waited for before the documents are read: a read would wait for it, too, but could not say meanwhile
    whether the GPU still runs anything.
    """
    import torch

    padded = (document if len(document) <= DOCUMENT_BYTES else b"").ljust(DOCUMENT_BYTES, b"\0")
    sent = torch.frombuffer(bytearray(padded), dtype=torch.uint8).to(device.torch_device)
    received = torch.empty(world_size * DOCUMENT_BYTES, dtype=torch.uint8, device=device.torch_device)
    all_gather(sent, received)
    device.synchronize(progress)
    data = bytes(received.cpu().tolist())
    return [
        data[start : start + DOCUMENT_BYTES].rstrip(b"\0") for start in range(0, len(data), DOCUMENT_BYTES)
    ]
