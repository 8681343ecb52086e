"""Single files: whole, cut off, empty, or of zeros."""

from __future__ import annotations

import os
import time
import zipfile
from pathlib import Path

import pytest
import torch

from ncclcheck.facts.checkpoints.file_ends import Ends, ends_of
from ncclcheck.facts.checkpoints.listing import files_of
from tests.facts.checkpoints import checkpoint_folders as written


def ends(file: Path) -> Ends:
    return ends_of(files_of(file, time.monotonic() + 10), file.name)


def damage(file: Path) -> str:
    return ends(file).damage


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    written.save(tmp_path / "model.pt")
    return tmp_path / "model.pt"


@pytest.fixture
def tensors(tmp_path: Path) -> Path:
    (tmp_path / "model.safetensors").write_bytes(written.safetensors())
    return tmp_path / "model.safetensors"


def test_whole_files_are_sound(saved: Path, tensors: Path) -> None:
    assert damage(saved) == damage(tensors) == ""


def test_one_of_torch_save_that_lost_its_end_is_named(saved: Path) -> None:
    os.truncate(saved, saved.stat().st_size - 30)
    assert "was cut off" in damage(saved)


@pytest.mark.parametrize("left", [4, 20, 100])
def test_safetensors_are_as_long_as_their_header_says(tensors: Path, left: int) -> None:
    os.truncate(tensors, left)
    assert damage(tensors)


def test_safetensors_with_more_than_their_header_says_are_named(tensors: Path) -> None:
    with tensors.open("ab") as file:
        file.write(b"more")
    assert "where its header tells" in damage(tensors)


def test_empty_ones_and_ones_of_zeros_were_never_written(saved: Path) -> None:
    saved.write_bytes(bytes(5000))
    assert "zeros" in damage(saved)
    saved.write_bytes(b"")
    assert damage(saved) == "is empty"


def test_one_whose_beginning_was_never_written_is_named_though_its_end_is_there(saved: Path) -> None:
    data = saved.read_bytes()
    saved.write_bytes(bytes(2048) + data[2048:])
    assert "its beginning was never written" in damage(saved)


def test_a_piece_that_is_missing_in_the_middle_is_noticed(saved: Path) -> None:
    whole = saved.read_bytes()
    saved.write_bytes(whole[:700] + whole[1000:])
    assert damage(saved).startswith("lacks 300 bytes in its middle")
    saved.write_bytes(whole[:700] + bytes(10) + whole[700:])
    assert damage(saved).startswith("has 10 bytes too many")


def test_zips_of_other_writers_are_whole(saved: Path) -> None:
    with zipfile.ZipFile(saved, "w") as archive:
        archive.writestr("a", b"b" * 1000)
        archive.comment = b"with a comment"
    assert ends(saved) == Ends(is_zip=True)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n", "git-lfs"),
        (b"<html>403 Forbidden</html>", "web page"),
        (bytes(range(1, 200)), "neither a zip nor a pickle"),
    ],
)
def test_something_else_in_the_place_of_a_file_is_named(saved: Path, data: bytes, words: str) -> None:
    saved.write_bytes(data)
    assert words in damage(saved)


def test_files_of_other_programs_are_not_called_damaged(tmp_path: Path) -> None:
    for name in ("vocab.bin", "model.bin", "mindspore.ckpt"):
        (tmp_path / name).write_bytes(bytes(range(1, 200)))
        found = ends(tmp_path / name)
        assert (found.damage, found.is_foreign) == ("", True)
        assert found.unknown


def test_a_pickle_of_an_old_torch_is_not_known_to_be_whole(saved: Path) -> None:
    state = {"weight": torch.arange(512.0)}
    torch.save(state, saved, _use_new_zipfile_serialization=False)  # noqa: TID251 (what an old job wrote)
    assert "nothing in it tells" in ends(saved).unknown
    saved.write_bytes(b"\x80\x04N.")
    assert ends(saved) == Ends()


def test_a_shard_of_zeros_was_never_written(tmp_path: Path) -> None:
    written.save_dcp(tmp_path)
    (shard,) = tmp_path.glob("*.distcp")
    assert ends(shard) == Ends()
    shard.write_bytes(bytes(shard.stat().st_size))
    assert "never written" in damage(shard)
