"""Gathers one tensor of every rank, for what the ranks tell each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncclcheck.measure.collectives import gather_into

if TYPE_CHECKING:
    from torch import Tensor


def all_gather(send: Tensor, recv: Tensor) -> None:
    """Fill `recv` with the `send` of every rank, in the order of ranks."""
    import torch.distributed as dist

    gather_into(dist)(recv, send)
