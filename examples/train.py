"""A small model trained with torch's DistributedDataParallel, on GPUs with NCCL or on CPUs with Gloo.

On every node, and it starts only where the nodes and the network are fit for it:

    ncclcheck preflight -- torchrun --nnodes 2 --node-rank $RANK --master-addr node1 --nproc-per-node gpu train.py
    srun -N2 --ntasks-per-node=1 ncclcheck preflight -- torchrun --nnodes 2 --rdzv-backend c10d \
        --rdzv-endpoint "$(scontrol show hostnames | head -n1)" train.py
"""

from __future__ import annotations

import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

RADIUS = 0.8


def setup() -> torch.device:
    """Join the other ranks, by the environment that torchrun or srun left, and choose this rank's device."""
    for plain, slurm in (
        ("RANK", "SLURM_PROCID"),
        ("WORLD_SIZE", "SLURM_NTASKS"),
        ("LOCAL_RANK", "SLURM_LOCALID"),
    ):
        os.environ.setdefault(plain, os.environ.get(slurm, "0" if plain != "WORLD_SIZE" else "1"))
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29500")
    if torch.cuda.is_available():
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
        dist.init_process_group("nccl")
        return device
    dist.init_process_group("gloo")
    return torch.device("cpu")


def batch(step: int, size: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Return this rank's share of step `step`: points and whether they lie inside a circle."""
    generator = torch.Generator().manual_seed(step * dist.get_world_size() + dist.get_rank())
    points = torch.rand(size, 2, generator=generator) * 2 - 1
    inside = (points.norm(dim=1, keepdim=True) < RADIUS).float()
    return points.to(device), inside.to(device)


def train(steps: int, device: torch.device) -> tuple[float, float]:
    """Loss of the first and of the last step, averaged over the ranks."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 1)).to(device)
    parallel = DistributedDataParallel(model, device_ids=[device.index] if device.type == "cuda" else None)
    optimizer = torch.optim.Adam(parallel.parameters(), lr=0.02)
    losses = []
    for step in range(steps):
        points, inside = batch(step, 256, device)
        loss = nn.functional.binary_cross_entropy_with_logits(parallel(points), inside)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        losses.append(mean.item() / dist.get_world_size())
    return losses[0], losses[-1]


def main() -> None:
    """Train, and let rank 0 say how it went."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=60)
    steps = parser.parse_args().steps
    device = setup()
    first, last = train(steps, device)
    if dist.get_rank() == 0:
        print(f"trained on {dist.get_world_size()} ranks: loss {first:.3f} -> {last:.3f}", flush=True)
    dist.barrier()  # no rank ends while work of the group is under way: torch may abort then
    dist.destroy_process_group()
    # Threads of Gloo outlive a group that DDP had, and may abort in Python's own end (pytorch issue 190489).
    os._exit(0)


if __name__ == "__main__":
    main()
