"""Folders of Hugging Face's Trainer."""

from __future__ import annotations

from pathlib import Path

from ncclcheck.facts.checkpoints.kinds.transformers import transformers
from tests.facts.checkpoints.reading import lacks


def test_a_hole_in_the_random_states_of_the_trainer_is_found(tmp_path: Path) -> None:
    for name in ("trainer_state.json", "rng_state_0.pth", "rng_state_2.pth"):
        (tmp_path / name).write_text("{}")
    assert lacks(transformers, tmp_path).missing == ("rng_state_1.pth",)
