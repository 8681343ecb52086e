"""What a node says of its paths: real ones, and one that stops answering."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from ncclcheck.facts.storage.paths import WantedPath, read_path, read_paths
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import Manifest

PATIENT_S = 20.0


def test_a_folder_tells_everything(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("abc")
    fact = read_path(WantedPath(str(tmp_path), "data"), PATIENT_S)
    room = os.statvfs(tmp_path)
    assert (fact.kind, fact.listed, fact.size_bytes) == ("folder", True, room.f_blocks * room.f_frsize)
    assert isinstance(fact.filesystem, str)
    assert isinstance(fact.manifest, Manifest)
    assert [(entry.name, entry.size_bytes) for entry in fact.manifest.sample] == [("f", 3)]
    assert isinstance(fact.stat_ms, float)
    assert isinstance(fact.read_ms, float)


def test_a_shared_folder_is_not_listed_through(tmp_path: Path) -> None:
    fact = read_path(WantedPath(str(tmp_path), "shared"), PATIENT_S)
    assert (fact.kind, fact.listed) == ("folder", True)
    assert isinstance(fact.manifest, Missing)


def test_what_is_not_there_is_absent_and_a_file_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("abc")
    wanted = [WantedPath(str(tmp_path / name), "data") for name in ("gone", "f", "f/below")]
    gone, file, below = read_paths(wanted, PATIENT_S)
    assert isinstance(gone.kind, Missing)
    assert gone.kind.missing == "absent"
    assert file.kind == "file"
    assert isinstance(below.kind, Missing)
    assert below.kind.missing == "absent"


@pytest.mark.slow
def test_a_path_that_stops_answering_costs_its_time_and_keeps_what_it_told(tmp_path: Path) -> None:
    began = time.monotonic()
    fact = read_path(WantedPath(str(tmp_path), "data"), 2.0, module="tests.facts.stuck_path_child")
    assert time.monotonic() - began < 5.0
    assert fact.kind == "folder"
    assert isinstance(fact.listed, Missing)
    assert (fact.listed.missing, "did not answer within 2 s" in fact.listed.detail) == ("timeout", True)


def test_a_child_that_cannot_start_is_an_error(tmp_path: Path) -> None:
    fact = read_path(WantedPath(str(tmp_path), "data"), PATIENT_S, module="tests.facts.nothing_like_it")
    assert isinstance(fact.kind, Missing)
    assert fact.kind.missing == "error"
