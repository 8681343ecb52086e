"""Packages are found by folder names, without opening them where the name says it all."""

from __future__ import annotations

from pathlib import Path

from ncclcheck.facts.software.packages import installed


def test_folders_of_each_layout_give_name_and_version(tmp_path: Path) -> None:
    for folder in (
        "torch-2.13.0+cu128.dist-info",
        "Typing_Extensions-4.1.dist-info",
        "zope.interface-6.0.dist-info",
        "old-1.0-py3.11.egg-info",
        "torch",
    ):
        (tmp_path / folder).mkdir()
    found = {name: package.version for name, package in installed([str(tmp_path)]).items()}
    assert found == {
        "torch": "2.13.0+cu128",
        "typing-extensions": "4.1",
        "zope-interface": "6.0",
        "old": "1.0",
    }


def test_a_folder_without_version_is_opened_for_it(tmp_path: Path) -> None:
    (tmp_path / "mine.egg-info").mkdir()
    (tmp_path / "mine.egg-info" / "PKG-INFO").write_text(
        "Metadata-Version: 2.1\nVersion: 0.3\n\nVersion: 9\n"
    )
    (tmp_path / "single.egg-info").write_text("Name: single\nVersion: 2\n")
    (tmp_path / "broken.egg-info").mkdir()
    found = {name: package.version for name, package in installed([str(tmp_path)]).items()}
    assert found == {"mine": "0.3", "single": "2", "broken": "unknown"}


def test_the_first_folder_of_the_path_wins_and_missing_ones_do_not_matter(tmp_path: Path) -> None:
    for place, version in (("one", "1.0"), ("two", "2.0")):
        (tmp_path / place / f"a-{version}.dist-info").mkdir(parents=True)
    path = [str(tmp_path / place) for place in ("nothing", "one", "two", "python311.zip")]
    assert installed(path)["a"].version == "1.0"
