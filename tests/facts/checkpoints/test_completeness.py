"""Whether one checkpoint is complete."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from ncclcheck.facts.checkpoints.completeness import attempt, judged, unreadable
from ncclcheck.facts.checkpoints.listing import Files, files_of
from ncclcheck.model.fact import Missing
from tests.facts.checkpoints import checkpoint_folders as written


def files(folder: Path) -> Files:
    return files_of(folder, time.monotonic() + 30)


def test_what_is_missing_is_not_known_where_not_all_was_listed(tmp_path: Path) -> None:
    written.save_sharded(tmp_path)
    (tmp_path / "model-00002-of-00003.safetensors").unlink()
    found = judged("step-1", files(tmp_path))
    assert found is not None
    assert found.complete is False
    cut = replace(files(tmp_path), cut=Missing("timeout", "only 3 files were listed"))
    found = judged("step-1", cut)
    assert found is not None
    assert found.complete == Missing("timeout", "only 3 files were listed")


def test_a_file_of_another_program_makes_no_known_checkpoint_unknown(tmp_path: Path) -> None:
    written.save_sharded(tmp_path)
    (tmp_path / "vocab.bin").write_bytes(b"words")
    found = judged("step-1", files(tmp_path))
    assert found is not None
    assert found.complete is True
    (tmp_path / "model.safetensors.index.json").unlink()
    for shard in tmp_path.glob("*.safetensors"):
        shard.unlink()
    found = judged("step-1", files(tmp_path))
    assert found is not None
    assert isinstance(found.complete, Missing)


def test_what_was_begun_is_incomplete_without_files_and_else_not_known(tmp_path: Path) -> None:
    (tmp_path / "mp_rank_00").mkdir()
    found = attempt("step-2", files(tmp_path))
    assert (found.step, found.complete, found.damaged) == (2, False, ("it holds no files",))
    (tmp_path / "mp_rank_00" / "notes").touch()
    assert isinstance(attempt("step-2", files(tmp_path)).complete, Missing)


def test_one_that_could_not_be_read_is_not_known() -> None:
    assert unreadable("step-3", Missing("denied")).complete == Missing("denied")


@pytest.mark.parametrize("name", ["model.pt", "model.safetensors", "__0_0.distcp"])
def test_a_pipe_or_a_socket_in_the_place_of_weights_is_damage(tmp_path: Path, name: str) -> None:
    written.save(tmp_path / "optimizer.pt")
    os.mkfifo(tmp_path / "events")
    with socket.socket(socket.AF_UNIX) as opened:
        opened.bind(str(tmp_path / "tensorboard"))
        assert judged("step-4", files(tmp_path)) is None
        os.mkfifo(tmp_path / name)
        (tmp_path / ".metadata").touch()
        found = judged("step-4", files(tmp_path))
    assert found is not None
    assert found.complete is False
    assert f"{name}: is a pipe in the place of the file" in found.damaged


def test_a_shard_that_is_a_pipe_is_told_once(tmp_path: Path) -> None:
    written.save_sharded(tmp_path)
    (tmp_path / "model-00002-of-00003.safetensors").unlink()
    os.mkfifo(tmp_path / "model-00002-of-00003.safetensors")
    found = judged("step-5", files(tmp_path))
    assert found is not None
    assert (found.missing, len(found.damaged)) == ((), 1)
