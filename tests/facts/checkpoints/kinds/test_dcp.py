"""Shards of torch.distributed.checkpoint, and their metadata."""

from __future__ import annotations

import os
import time
from pathlib import Path

from ncclcheck.facts.checkpoints.kinds.dcp import dcp
from tests.facts.checkpoints import checkpoint_folders as written
from tests.facts.checkpoints.reading import lacks, why_unknown


def test_a_dcp_file_shorter_than_its_metadata_says_is_damaged(tmp_path: Path) -> None:
    written.save_dcp(tmp_path)
    (data,) = tmp_path.glob("*.distcp")
    data.write_bytes(data.read_bytes()[:-1])
    assert "were recorded" in lacks(dcp, tmp_path).damaged[0]


def test_dcp_metadata_that_cannot_be_read_is_damaged(tmp_path: Path) -> None:
    written.save_dcp(tmp_path)
    (tmp_path / ".metadata").write_bytes(b"\x80\x04")
    assert lacks(dcp, tmp_path).damaged[0].startswith(".metadata: ")


def test_metadata_before_its_rename_is_missing(tmp_path: Path) -> None:
    (tmp_path / ".metadata.tmp").write_bytes(b"x")
    assert lacks(dcp, tmp_path).missing == (".metadata",)


def test_metadata_of_a_save_before_makes_no_complete_checkpoint(tmp_path: Path) -> None:
    written.save_dcp(tmp_path)
    assert lacks(dcp, tmp_path).unknown is None
    earlier = time.time() - 9000
    os.utime(tmp_path / ".metadata", (earlier, earlier))
    assert ".metadata is 150 minutes older than __0_0.distcp" in why_unknown(dcp, tmp_path)
