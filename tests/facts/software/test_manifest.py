"""Manifests of real folders: the same whatever the order, different where a file is, and bounded."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from ncclcheck.facts.software.manifest import EVERY_HASH, PART_BYTES, READ, SAMPLED, read_manifest
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import Manifest

LONG_S = 60.0


def manifest(root: Path, list_s: float = LONG_S, read_s: float = LONG_S) -> Manifest:
    now = time.monotonic()
    return read_manifest(os.fsencode(root), now + list_s, now + read_s)[0]


def fill(root: Path, names: list[str], content: str = "x") -> Path:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    return root


NAMES = [f"part{number % 3}/sample-{number:04d}" for number in range(40)]


def test_the_same_files_in_another_order_are_the_same(tmp_path: Path) -> None:
    one, other = fill(tmp_path / "a", NAMES), fill(tmp_path / "b", NAMES[::-1])
    assert manifest(one) == manifest(other)
    assert (manifest(one).files, manifest(one).complete, manifest(one).largest_hash) == (40, True, EVERY_HASH)


def test_a_file_less_or_another_name_changes_the_checksum(tmp_path: Path) -> None:
    whole = manifest(fill(tmp_path / "a", NAMES))
    less = manifest(fill(tmp_path / "b", NAMES[1:]))
    renamed = manifest(fill(tmp_path / "c", [*NAMES[1:], "part0/sample-9999"]))
    assert len({whole.names_checksum, less.names_checksum, renamed.names_checksum}) == 3


def test_two_nodes_sample_the_same_names_of_a_large_folder(tmp_path: Path) -> None:
    names = [f"{number:05d}" for number in range(3 * SAMPLED)]
    one, other = manifest(fill(tmp_path / "a", names)), manifest(fill(tmp_path / "b", names[1:]))
    assert len(one.sample) == SAMPLED
    assert max(entry.name_hash for entry in one.sample) == one.largest_hash
    assert len({entry.name for entry in one.sample} ^ {entry.name for entry in other.sample}) <= 2
    assert sum(isinstance(entry.sha256, str) for entry in one.sample) == READ


@pytest.mark.parametrize("where", [0, PART_BYTES - 1, -1])
def test_a_byte_at_the_beginning_or_the_end_counts(tmp_path: Path, where: int) -> None:
    content = bytearray(4 * PART_BYTES)
    (tmp_path / "f").write_bytes(content)
    before = manifest(tmp_path).sample[0]
    content[where] = 1
    (tmp_path / "f").write_bytes(content)
    after = manifest(tmp_path).sample[0]
    assert before.size_bytes == after.size_bytes
    assert before.sha256 != after.sha256


def test_one_file_is_its_own_manifest(tmp_path: Path) -> None:
    found = manifest(fill(tmp_path, ["f"]) / "f")
    assert [(entry.name, entry.size_bytes) for entry in found.sample] == [("", 1)]


def test_pipes_and_links_are_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path)
    assert all(isinstance(entry.sha256, Missing) for entry in manifest(tmp_path).sample)


def test_when_the_time_is_over_a_part_is_not_the_whole(tmp_path: Path) -> None:
    fill(tmp_path, [f"{number:05d}" for number in range(1000)])
    found = manifest(tmp_path, list_s=-1.0, read_s=-1.0)
    assert (found.complete, found.files < 1000) == (False, True)
    assert all(isinstance(entry.size_bytes, Missing) for entry in found.sample)


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        manifest(tmp_path / "gone")


def test_folders_that_cannot_be_listed_are_counted_and_those_of_a_filesystem_are_not(tmp_path: Path) -> None:
    fill(tmp_path, NAMES)
    deep = os.open(tmp_path, os.O_RDONLY)
    for _ in range(20):  # longer than a path may be
        os.mkdir("x" * 250, dir_fd=deep)
        below = os.open("x" * 250, os.O_RDONLY, dir_fd=deep)
        os.close(deep)
        deep = below
    os.close(deep)
    assert (manifest(tmp_path).files, manifest(tmp_path).unlisted) == (len(NAMES), 1)


def test_folders_without_files_are_listed_in_bounded_time_too(tmp_path: Path) -> None:
    for number in range(20):
        (tmp_path / str(number)).mkdir()
    assert manifest(tmp_path, list_s=-1.0).complete is False
    assert manifest(tmp_path).complete is True
