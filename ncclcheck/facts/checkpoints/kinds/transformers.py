"""A folder of Hugging Face's Trainer: weights, then its state, and every rank's random state."""

from __future__ import annotations

import re

from ncclcheck.facts.checkpoints.kinds.rule import MOST_NEEDED, Lacks, Need, Rule, compared, too_many
from ncclcheck.facts.checkpoints.listing import Files
from ncclcheck.model.job.checkpoint_names import is_beside_weights

STATE = "trainer_state.json"
_RNG = re.compile(r"rng_state_(\d+)\.pth", re.ASCII)
_WEIGHTS = (
    *(".bin", ".safetensors", ".pt", ".pth", ".ckpt", ".distcp"),
    *(".h5", ".msgpack", ".npz", ".npy", ".gguf", ".onnx", ".tensors"),
)


def transformers(files: Files) -> Lacks | None:
    """Judge a folder with the Trainer's state or a rank's random state.

    On local disks each node has the random states of its own ranks (save_on_each_node), so that they begin anywhere.
    """
    if STATE not in files.sizes and not any(map(_RNG.fullmatch, files.sizes)):
        return None  # weights alone, as save_model writes them
    ranks = [int(found[1]) for name in files.sizes if (found := _RNG.fullmatch(name))]
    if max(ranks, default=0) >= MOST_NEEDED:
        return too_many("transformers")
    needs = [Need(STATE), *(Need(f"rng_state_{rank}.pth") for rank in _between(ranks))]
    if not any(name.endswith(_WEIGHTS) and not is_beside_weights(name) for name in files.sizes):
        needs.append(Need("model*, pytorch_model* or adapter_model*"))
    return compared("transformers", files, needs)


def _between(ranks: list[int]) -> range:
    return range(min(ranks), max(ranks) + 1) if ranks else range(0)


RULES: tuple[Rule, ...] = (transformers,)
