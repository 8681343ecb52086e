"""Sharded weights and their index."""

from __future__ import annotations

import json
from pathlib import Path

from ncclcheck.facts.checkpoints.kinds.index import index
from tests.facts.checkpoints import checkpoint_folders as written
from tests.facts.checkpoints.reading import lacks


def test_a_broken_index_is_damaged(tmp_path: Path) -> None:
    written.save_sharded(tmp_path)
    (tmp_path / "model.safetensors.index.json").write_text("{")
    assert "weight_map" in lacks(index, tmp_path).damaged[0]


def test_a_shard_of_another_save_is_damaged(tmp_path: Path) -> None:
    written.save_sharded(tmp_path)
    (tmp_path / "model-00002-of-00003.safetensors").write_bytes(written.safetensors(name="old"))
    assert lacks(index, tmp_path).damaged == (
        "model-00002-of-00003.safetensors: has no tensor w1, which the index names in it",
    )


def test_of_two_forms_of_the_weights_safetensors_are_enough(tmp_path: Path) -> None:
    written.save_sharded(tmp_path)
    weights = {"w0": "pytorch_model-00001-of-00001.bin"}
    (tmp_path / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": weights}))
    assert lacks(index, tmp_path).missing == ()
    (tmp_path / "model.safetensors.index.json").unlink()
    assert lacks(index, tmp_path).missing == ("pytorch_model-00001-of-00001.bin",)
