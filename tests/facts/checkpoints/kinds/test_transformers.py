"""Folders of Hugging Face's Trainer."""

from __future__ import annotations

from pathlib import Path

from ncclcheck.facts.checkpoints.kinds.transformers import transformers
from tests.facts.checkpoints.reading import lacks


def write(folder: Path, *ranks: int) -> None:
    """As the Trainer does, with the random states of these ranks."""
    (folder / "trainer_state.json").write_text("{}")
    for name in ("model.safetensors", "optimizer.pt", *(f"rng_state_{rank}.pth" for rank in ranks)):
        (folder / name).touch()


def test_a_hole_in_the_random_states_of_the_trainer_is_found(tmp_path: Path) -> None:
    write(tmp_path, 0, 2)
    assert lacks(transformers, tmp_path).missing == ("rng_state_1.pth",)


def test_a_node_may_have_the_random_states_of_its_own_ranks_only(tmp_path: Path) -> None:
    write(tmp_path, *range(8, 16))
    assert lacks(transformers, tmp_path).missing == ()


def test_state_without_weights_is_no_checkpoint(tmp_path: Path) -> None:
    write(tmp_path, 0)
    (tmp_path / "model.safetensors").unlink()
    assert lacks(transformers, tmp_path).missing == ("model*, pytorch_model* or adapter_model*",)


def test_weights_may_be_anywhere_below(tmp_path: Path) -> None:
    write(tmp_path, 0)
    (tmp_path / "model.safetensors").unlink()
    (tmp_path / "0_Transformer").mkdir()
    (tmp_path / "0_Transformer" / "pytorch_model.bin").touch()
    assert lacks(transformers, tmp_path).missing == ()
