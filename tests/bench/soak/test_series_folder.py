"""The folder of a soak, whatever is in it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ncclcheck.bench.soak.series_folder import FILE, NODES, has_series, lines_in, nodes_in
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
    assert not has_series("x" * 300)
