"""Two states of one version are told apart."""

from __future__ import annotations

from pathlib import Path

import ncclcheck
from ncclcheck.exchange.own_build import _modules, own_build


def test_the_build_begins_with_the_version() -> None:
    assert own_build().startswith(f"{ncclcheck.__version__} (")
    assert own_build() == own_build()


def test_names_and_sizes_of_modules_count_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "part" / "__pycache__").mkdir(parents=True)
    (tmp_path / "part" / "__pycache__" / "a.py").write_text("")
    (tmp_path / "part" / "a.py").write_text("one")
    (tmp_path / "table.toml").write_text("x = 1")
    above = len(str(tmp_path))
    assert list(_modules(str(tmp_path), above)) == ["/part/a.py 3"]
    (tmp_path / "part" / "a.py").write_text("four")
    assert list(_modules(str(tmp_path), above)) == ["/part/a.py 4"]


def test_a_folder_that_is_gone_has_none(tmp_path: Path) -> None:
    assert list(_modules(str(tmp_path / "gone"), 0)) == []
