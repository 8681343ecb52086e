"""A recording is bounded, and its archive unpacks to its folder."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from scripts.recording.recording import record
from scripts.recording.recording_tree import MOST_BYTES, Recording, write_archive, write_folder
from scripts.recording.redaction import Redaction
from tests.recording.test_recording import KEY, facts_of, made


def test_an_archive_unpacks_to_the_same_tree(tmp_path: Path) -> None:
    recording = record(made(tmp_path).root, KEY, {})
    write_folder(recording, tmp_path / "out")
    write_archive(recording, tmp_path / "bug.tar.gz")
    with tarfile.open(tmp_path / "bug.tar.gz") as archive:
        assert {(getmember.uid, getmember.mtime, getmember.uname) for getmember in archive.getmembers()} == {
            (0, 0, "")
        }
        archive.extractall(tmp_path / "unpacked", filter="data")
    assert facts_of(tmp_path / "unpacked" / "bug") == facts_of(tmp_path / "out")


def test_what_is_recorded_is_bounded(tmp_path: Path) -> None:
    recording = Recording(made(tmp_path).root, Redaction(KEY))
    with pytest.raises(OverflowError):
        recording.add("proc/large", "file", bytes(MOST_BYTES + 1))
