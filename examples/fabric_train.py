"""The same with Lightning Fabric, and with the check inside: every rank calls ncclcheck before Fabric sets up.

    fabric run --num-nodes 2 --node-rank $RANK --main-address node1 --devices 8 fabric_train.py

(The prefix works as well: `ncclcheck preflight -- fabric run ... fabric_train.py`.)
"""

from __future__ import annotations

import os

import torch
from torch import nn

import ncclcheck

try:
    from lightning.fabric import Fabric
except ImportError:
    from lightning_fabric import Fabric

RADIUS = 0.8


def batch(step: int, rank: int, size: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return this rank's share of step `step`: points and whether they lie inside a circle."""
    generator = torch.Generator().manual_seed(step * 4096 + rank)
    points = torch.rand(size, 2, generator=generator) * 2 - 1
    return points, (points.norm(dim=1, keepdim=True) < RADIUS).float()


def main() -> None:
    """Check; train only if all is well; let rank 0 say how it went."""
    report = ncclcheck.preflight()
    if report.verdict.exit_code:
        raise SystemExit(ncclcheck.to_text(report))

    fabric = Fabric()  # devices, nodes and strategy are those of the command line
    fabric.seed_everything(0)
    network = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 1))
    model, optimizer = fabric.setup(network, torch.optim.Adam(network.parameters(), lr=0.02))
    losses = []
    for step in range(80):
        points, inside = (one.to(fabric.device) for one in batch(step, fabric.global_rank, 256))
        loss = nn.functional.binary_cross_entropy_with_logits(model(points), inside)
        optimizer.zero_grad()
        fabric.backward(loss)
        optimizer.step()
        losses.append(fabric.all_reduce(loss.detach(), reduce_op="mean").item())
    fabric.barrier()  # no rank ends while work of the group is under way: torch may abort then
    if fabric.global_rank == 0:
        print(f"trained on {fabric.world_size} ranks: loss {losses[0]:.3f} -> {losses[-1]:.3f}", flush=True)
    # Threads of Gloo outlive a group that DDP had, and may abort in Python's own end (pytorch issue 190489).
    os._exit(0)


if __name__ == "__main__":
    main()
