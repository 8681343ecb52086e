"""Sharded weights and their index."""

from __future__ import annotations

from pathlib import Path

from ncclcheck.facts.checkpoints.kinds.index import index
from tests.facts.checkpoints import checkpoint_folders as written
from tests.facts.checkpoints.reading import lacks


def test_a_broken_index_is_damaged(tmp_path: Path) -> None:
    written.save_sharded(tmp_path)
    (tmp_path / "model.safetensors.index.json").write_text("{")
    assert "weight_map" in lacks(index, tmp_path).damaged[0]
