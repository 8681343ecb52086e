"""Checkpoints as the frameworks write them, small: by torch itself where that writes them, else by their documents."""

from __future__ import annotations

import json
from pathlib import Path

import torch
import torch.distributed.checkpoint as dcp


def save_dcp(folder: Path) -> None:
    """By torch.distributed.checkpoint, of one process."""
    state = {"model": {"weight": torch.arange(4096.0), "bias": torch.ones(7)}, "step": 3}
    dcp.save(state, checkpoint_id=folder, no_dist=True)


def save(file: Path, state: object = None) -> None:
    """By torch.save."""
    file.parent.mkdir(parents=True, exist_ok=True)
    torch.save(state or {"weight": torch.arange(512.0)}, file)  # noqa: TID251 (what a job writes)


def save_deepspeed(folder: Path, data_ranks: int, model_ranks: int = 1) -> None:
    """As DeepSpeed with ZeRO names its files (runtime/engine.py)."""
    for model_rank in range(model_ranks):
        state = {"module": {"w": torch.ones(8)}, "dp_world_size": data_ranks, "mp_world_size": model_ranks}
        save(folder / f"mp_rank_{model_rank:02d}_model_states.pt", state)
        for rank in range(data_ranks):
            save(folder / f"bf16_zero_pp_rank_{rank}_mp_rank_{model_rank:02d}_optim_states.pt")


def save_megatron(folder: Path, tensor: int, pipeline: int) -> None:
    """As Megatron-LM names its folders (megatron/training/checkpointing.py), without its arguments."""
    for tensor_rank in range(tensor):
        for pipeline_rank in range(pipeline):
            save(folder / f"mp_rank_{tensor_rank:02d}_{pipeline_rank:03d}" / "model_optim_rng.pt")


def safetensors(numbers: int = 64, name: str = "w") -> bytes:
    """A file of one tensor in the format of safetensors."""
    header = json.dumps(
        {name: {"dtype": "F32", "shape": [numbers], "data_offsets": [0, 4 * numbers]}}
    ).encode()
    return len(header).to_bytes(8, "little") + header + bytes(4 * numbers)


def save_sharded(folder: Path, shards: int = 3) -> None:
    """Weights with an index, as Hugging Face's libraries write them."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"model-{number + 1:05d}-of-{shards:05d}.safetensors" for number in range(shards)]
    for number, name in enumerate(names):
        (folder / name).write_bytes(safetensors(name=f"w{number}"))
    index = {"metadata": {}, "weight_map": {f"w{number}": name for number, name in enumerate(names)}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def save_with_manifest(folder: Path, *, records: bool = True) -> None:
    """Shards with a manifest and a marker."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(3):
        (folder / f"shard-{number}.bin").write_bytes(bytes([1]) * (100 + number))
    listed: list[object] = [
        {"name": f"shard-{number}.bin", "size": 100 + number} if records else f"shard-{number}.bin"
        for number in range(3)
    ]
    (folder / "manifest.json").write_text(json.dumps({"shards": listed}))
    (folder / "COMPLETE").touch()
