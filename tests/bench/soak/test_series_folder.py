"""The folder of a soak, whatever is in it."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from ncclcheck import timeouts
from ncclcheck.bench.soak.series_folder import FILE, NODES, has_series, lines_in, nodes_in, start_in
from ncclcheck.measure.soak import lines
from ncclcheck.measure.soak.lines import line_of
from ncclcheck.model.fact import Missing
from tests.soak_builders import soak_start


@pytest.mark.parametrize("name", [FILE, NODES])
def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    found = lines_in(str(tmp_path)) if name == FILE else nodes_in(str(tmp_path))
    assert isinstance(found, Missing)
    assert "not a regular file" in found.detail


def test_a_line_without_an_end_is_refused(tmp_path: Path) -> None:
    with (tmp_path / FILE).open("wb") as file:
        file.write(line_of(soak_start()))
        file.truncate(1 << 33)
    found = lines_in(str(tmp_path))
    assert isinstance(found, Missing)
    assert "longer than" in found.detail


def test_a_name_that_is_too_long_is_missing() -> None:
    assert isinstance(lines_in("x" * 300), Missing)
    assert isinstance(nodes_in("x" * 300), Missing)
    assert has_series("x" * 300) is False


def test_a_mount_that_dies_while_it_is_read_holds_nobody_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / FILE).write_bytes(line_of(soak_start()))
    (tmp_path / NODES).write_bytes(b"{}")
    held = threading.Event()
    monkeypatch.setattr(timeouts, "USER_FILE_S", 0.2)
    monkeypatch.setattr(os, "read", lambda *_: held.wait(60))
    for found in (lines_in(str(tmp_path)), start_in(str(tmp_path)), nodes_in(str(tmp_path))):
        assert isinstance(found, Missing)
        assert "its mount hangs" in found.detail
    held.set()


def test_a_huge_file_of_short_lines_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MOST_LINES", 50)
    line = line_of(soak_start())
    (tmp_path / FILE).write_bytes(line * 51)
    found = lines_in(str(tmp_path))
    assert isinstance(found, Missing)
    assert "more than 50 lines" in found.detail
    (tmp_path / FILE).write_bytes(line * 50)
    assert not isinstance(lines_in(str(tmp_path)), Missing)


def test_a_file_of_damaged_lines_is_given_up(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(line_of(soak_start()) + b"x\n" * 100_000)
    found = lines_in(str(tmp_path))
    assert isinstance(found, Missing)
    assert "10001 of 10002 lines are damaged" in found.detail
