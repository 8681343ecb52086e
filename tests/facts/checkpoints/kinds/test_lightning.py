"""Sharded checkpoints of Lightning."""

from __future__ import annotations

from pathlib import Path

from ncclcheck.model.fact import Missing
from tests.facts.checkpoints import checkpoint_folders as written
from tests.facts.checkpoints.reading import newest


def test_sharded_weights_in_a_folder_of_lightning_are_not_called_complete_without_its_own_file(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "epoch=1-step=100.ckpt"
    written.save_dcp(folder)
    written.save(folder / "meta.pt")
    assert newest(tmp_path).complete is True
    (folder / "meta.pt").unlink()
    assert isinstance(newest(tmp_path).complete, Missing)
