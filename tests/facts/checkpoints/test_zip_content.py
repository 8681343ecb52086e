"""Zeros inside a file of torch.save: what was not written is told from tensors of zeros."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
import torch.distributed.checkpoint as torch_dcp

from ncclcheck.facts.checkpoints.listing import files_of
from ncclcheck.facts.checkpoints.zip_content import PAGE_BYTES, Search, lost_data, search_of
from tests.facts.checkpoints.checkpoint_folders import save
from tests.facts.checkpoints.reading import newest

LARGE = 1 << 18  # numbers of a tensor of 1 MiB


def _lost(file: Path, places: int = 64) -> str:
    return lost_data(files_of(file, math.inf), file.name, Search(places, math.inf))


def _random(file: Path, numbers: int = LARGE, tensors: int = 4) -> Path:
    torch.manual_seed(1)
    save(file, {f"w{number}": torch.randn(numbers) for number in range(tensors)})
    return file


def _overwrite_with_zeros(file: Path, place: int, count: int) -> None:
    with file.open("r+b") as opened:
        opened.seek(place)
        opened.write(bytes(count))


def _copy_with_hole(source: Path, place: int, count: int) -> Path:
    """Return a copy of which these bytes were never written."""
    data = source.read_bytes()
    copy = source.with_name("sparse.pt")
    with copy.open("wb") as opened:
        opened.write(data[:place])
        opened.seek(place + count)
        opened.write(data[place + count :])
    return copy


def test_sound_files_hold_what_their_checksums_say(tmp_path: Path) -> None:
    assert _lost(_random(tmp_path / "model.pt")) == ""
    assert _lost(_random(tmp_path / "small.pt", 100)) == ""


def test_tensors_of_zeros_are_sound_also_in_a_sparse_copy(tmp_path: Path) -> None:
    save(tmp_path / "model.pt", {"w": torch.zeros(LARGE)})
    assert _lost(tmp_path / "model.pt") == ""
    assert _lost(_copy_with_hole(tmp_path / "model.pt", LARGE, PAGE_BYTES * 8)) == ""


def test_zeros_of_a_part_of_the_file_are_found(tmp_path: Path) -> None:
    file = _random(tmp_path / "model.pt")
    _overwrite_with_zeros(file, file.stat().st_size // 2, file.stat().st_size // 16)
    assert "checksum" in _lost(file)
    assert "data/" in _lost(file)


def test_a_single_page_that_was_never_written_is_found_as_a_hole(tmp_path: Path) -> None:
    file = _copy_with_hole(_random(tmp_path / "model.pt"), 100 * PAGE_BYTES, PAGE_BYTES)
    if file.stat().st_blocks * 512 >= file.stat().st_size:
        pytest.skip("this file system has no holes")
    assert "checksum" in _lost(file)


def test_a_small_file_is_compared_as_a_whole(tmp_path: Path) -> None:
    file = _random(tmp_path / "model.pt", 100)
    data = file.read_bytes()
    place = data.index(b"data/2")
    _overwrite_with_zeros(
        file, data.index(b"Z" * 8, place) + 256, 40
    )  # torch fills up with Z before the data
    assert "checksum" in _lost(file)


def test_the_beginning_of_a_record_that_was_not_written_is_named(tmp_path: Path) -> None:
    file = _random(tmp_path / "model.pt", 100)
    _overwrite_with_zeros(file, file.read_bytes().index(b"PK\x03\x04", 4), 30)
    assert "was not written at byte" in _lost(file)


@contextmanager
def _without_checksums() -> Iterator[None]:
    torch.serialization.set_crc32_options(False)
    try:
        yield
    finally:
        torch.serialization.set_crc32_options(True)


@pytest.mark.skipif(
    not hasattr(torch.serialization, "set_crc32_options"), reason="this torch always writes them"
)
def test_files_without_checksums_are_not_doubted(tmp_path: Path) -> None:
    with _without_checksums():
        save(tmp_path / "model.pt", {"w": torch.zeros(LARGE), "small": torch.ones(3)})
    assert _lost(tmp_path / "model.pt") == ""


def test_of_many_files_fewer_places_are_looked_at_and_none_without_time(tmp_path: Path) -> None:
    file = _random(tmp_path / "model.pt")
    _overwrite_with_zeros(file, file.stat().st_size // 2, file.stat().st_size // 16)
    files = files_of(file, time.monotonic() + 100)
    assert search_of(files, 1).places > search_of(files, 100).places > search_of(files, 10_000).places == 0
    assert search_of(files, 1).until < time.monotonic() + 50
    assert lost_data(files, file.name, Search(64, 0.0)) == ""
    assert lost_data(files, file.name, Search(0, math.inf)) == ""


def test_a_directory_that_claims_any_length_costs_nothing(tmp_path: Path) -> None:
    file = _random(tmp_path / "model.pt")
    os.truncate(file, 1 << 34)
    assert _lost(file) == ""


def test_shards_of_torch_distributed_hold_a_zip_for_each_tensor(tmp_path: Path) -> None:
    torch.manual_seed(1)
    state = {"a": torch.randn(LARGE), "b": torch.randn(LARGE)}
    torch_dcp.save(state, checkpoint_id=tmp_path / "step_7", no_dist=True)
    assert newest(tmp_path).complete is True
    (shard,) = (tmp_path / "step_7").glob("*.distcp")
    _overwrite_with_zeros(shard, shard.stat().st_size // 2, shard.stat().st_size // 8)
    found = newest(tmp_path)
    assert found.complete is False
    assert found.damaged[0].startswith(f"{shard.name}: ")
