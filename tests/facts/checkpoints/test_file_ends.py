"""Single files: whole, cut off, empty, or of zeros."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from ncclcheck.facts.checkpoints.file_ends import damage_of
from ncclcheck.facts.checkpoints.listing import files_of
from tests.facts.checkpoints import checkpoint_folders as written


def damage(file: Path) -> str:
    return damage_of(files_of(file, time.monotonic() + 10), file.name)


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


def test_a_header_of_garbage_is_no_crash(tensors: Path) -> None:
    tensors.write_bytes((5).to_bytes(8, "little") + b"{nonsense")
    assert "cannot be read" in damage(tensors)
    tensors.write_bytes(b"\xff" * 40)
    assert "no safetensors" in damage(tensors)


def test_a_header_nested_deeper_than_any_reader_goes_is_no_header(tensors: Path) -> None:
    header = b'{"a":{"b":' + b"[" * 100_000 + b"]" * 100_000 + b"}}"
    tensors.write_bytes(len(header).to_bytes(8, "little") + header)
    assert damage(tensors) == "has a header that cannot be read"
