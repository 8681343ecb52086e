"""A folder of Hugging Face's Trainer: its state, which is written after the weights, and every rank's random state."""

from __future__ import annotations

import re

from ncclcheck.facts.checkpoints.kinds.rule import MOST_NEEDED, Lacks, Need, Rule, compared, too_many
from ncclcheck.facts.checkpoints.listing import Files

_RNG = re.compile(r"rng_state_(\d+)\.pth", re.ASCII)


def transformers(files: Files) -> Lacks | None:
    """Judge a folder with the Trainer's state or a rank's random state."""
    if "trainer_state.json" not in files.sizes and not any(map(_RNG.fullmatch, files.sizes)):
        return None  # weights alone, as save_model writes them
    needs = [Need("trainer_state.json")]
    ranks = [int(found[1]) for name in files.sizes if (found := _RNG.fullmatch(name))]
    if max(ranks, default=0) >= MOST_NEEDED:
        return too_many("transformers")
    needs += [Need(f"rng_state_{rank}.pth") for rank in range(max(ranks, default=-1) + 1)]
    return compared("transformers", files, needs)


RULES: tuple[Rule, ...] = (transformers,)
