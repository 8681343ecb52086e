"""The files of a checkpoint."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from ncclcheck.facts.checkpoints import listing
from ncclcheck.facts.checkpoints.listing import files_of


def test_names_and_sizes_of_all_files_below(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "c").write_bytes(b"12345")
    (tmp_path / "gone").symlink_to("nowhere")
    found = files_of(tmp_path, time.monotonic() + 10)
    assert found.sizes == {"a/b/c": 5}
    assert found.cut is None
    digest = found.digest
    (tmp_path / "a" / "b" / "c").write_bytes(b"123456")
    assert files_of(tmp_path, time.monotonic() + 10).digest != digest


def test_links_to_folders_are_followed_but_not_in_a_circle(tmp_path: Path) -> None:
    (tmp_path / "fast" / "rank").mkdir(parents=True)
    (tmp_path / "fast" / "rank" / "weights").write_bytes(b"1")
    (tmp_path / "here" / "deep").mkdir(parents=True)
    (tmp_path / "here" / "mp_rank_00").symlink_to(tmp_path / "fast" / "rank")
    (tmp_path / "here" / "deep" / "up").symlink_to("..")
    found = files_of(tmp_path / "here", time.monotonic() + 10)
    assert found.sizes == {"mp_rank_00/weights": 1}
    assert found.cut is None


def test_folders_too_deep_to_list_are_said(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*"abcdefg")
    deep.mkdir(parents=True)
    (deep / "weights").touch()
    assert files_of(tmp_path, time.monotonic() + 10).sizes == {"a/b/c/d/e/f/g/weights": 0}
    tmp_path.joinpath("x", *["d"] * 40).mkdir(parents=True)
    assert "levels were not listed" in str(files_of(tmp_path, time.monotonic() + 10).cut)


def test_more_files_than_are_listed_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "MOST_FILES", 2)
    for number in range(3):
        (tmp_path / str(number)).touch()
    assert "the rest was not listed" in str(files_of(tmp_path, time.monotonic() + 10).cut)


def test_what_was_not_listed_in_the_time_is_said(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / str(number)).touch()
    assert "only 1 files" in str(files_of(tmp_path, time.monotonic() - 1).cut)


def test_a_long_file_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "long").write_bytes(bytes(10))
    found = files_of(tmp_path, time.monotonic() + 10)
    assert found.read("long", 9) is None
    assert found.read("long", 10) == bytes(10)
    assert found.ends("long", 2, 3) == (bytes(2), bytes(3))


def test_what_is_no_file_is_told_apart_and_never_opened(tmp_path: Path) -> None:
    (tmp_path / "model.pt").write_bytes(b"1")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "null").symlink_to("/dev/null")
    found = files_of(tmp_path, time.monotonic() + 10)
    assert (found.sizes, found.foreign) == ({"model.pt": 1}, {"pipe": "a pipe", "null": "a device"})
    assert files_of(tmp_path / "pipe", time.monotonic() + 10).foreign == {"pipe": "a pipe"}
