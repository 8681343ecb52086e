"""The header of a safetensors file."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from ncclcheck.facts.checkpoints.listing import files_of
from ncclcheck.facts.checkpoints.safetensors import Header, header_of
from tests.facts.checkpoints import checkpoint_folders as written


def header(file: Path) -> Header:
    return header_of(files_of(file, time.monotonic() + 10), file.name)


@pytest.fixture
def tensors(tmp_path: Path) -> Path:
    (tmp_path / "model.safetensors").write_bytes(written.safetensors())
    return tmp_path / "model.safetensors"


def test_it_names_the_tensors(tensors: Path) -> None:
    assert header(tensors) == Header(frozenset({"w"}))


def test_a_header_of_garbage_is_no_crash(tensors: Path) -> None:
    tensors.write_bytes((5).to_bytes(8, "little") + b"{nonsense")
    assert "cannot be read" in header(tensors).damage
    tensors.write_bytes(b"\xff" * 40)
    assert "no safetensors" in header(tensors).damage


def test_a_header_nested_deeper_than_any_reader_goes_is_no_header(tensors: Path) -> None:
    text = b'{"a":{"b":' + b"[" * 100_000 + b"]" * 100_000 + b"}}"
    tensors.write_bytes(len(text).to_bytes(8, "little") + text)
    assert header(tensors).damage == "has a header that cannot be read"
