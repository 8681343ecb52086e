"""Shards of torch.distributed.checkpoint, and their metadata."""

from __future__ import annotations

from pathlib import Path

from ncclcheck.facts.checkpoints.kinds.dcp import dcp
from tests.facts.checkpoints import checkpoint_folders as written
from tests.facts.checkpoints.reading import lacks


def test_a_dcp_file_shorter_than_its_metadata_says_is_damaged(tmp_path: Path) -> None:
    written.save_dcp(tmp_path)
    (data,) = tmp_path.glob("*.distcp")
    data.write_bytes(data.read_bytes()[:-1])
    assert "were recorded" in lacks(dcp, tmp_path).damaged[0]


def test_dcp_metadata_that_cannot_be_read_is_damaged(tmp_path: Path) -> None:
    written.save_dcp(tmp_path)
    (tmp_path / ".metadata").write_bytes(b"\x80\x04")
    assert lacks(dcp, tmp_path).damaged[0].startswith(".metadata: ")
