"""The file with a node's last results: bounded, written whole, and believed only if it is ours."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ncclcheck.cli.slurm_health.decision import Result
from ncclcheck.cli.slurm_health.history import MOST_BYTES, record
from ncclcheck.model.errors import UsageError

NOW = 1_000_000.0


def add(folder: Path, *goods: bool, at_s: float = NOW) -> tuple[Result, ...]:
    known: tuple[Result, ...] = ()
    for number, is_good in enumerate(goods):
        known = record(str(folder), "node1", Result(at_s + number, is_good))
    return known


def file_in(folder: Path) -> Path:
    return folder / "slurm-health-node1.json"


def test_the_last_three_are_kept_in_a_folder_and_a_file_of_our_own(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    assert [result.is_good for result in add(folder, True, True, False, True, False)] == [False, True, False]
    assert folder.stat().st_mode & 0o777 == 0o700
    assert file_in(folder).stat().st_mode & 0o777 == 0o600
    assert file_in(folder).stat().st_size < MOST_BYTES
    assert len(list(folder.iterdir())) == 1


def test_each_node_has_a_file_of_its_own(tmp_path: Path) -> None:
    add(tmp_path / "state", False, False)
    assert record(str(tmp_path / "state"), "node2", Result(NOW, True)) == (Result(NOW, True),)


def test_results_of_another_day_and_of_the_future_do_not_count(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    add(folder, False, False)
    assert len(add(folder, True, at_s=NOW + 90_000)) == 1
    assert len(add(folder, True, at_s=NOW)) == 1


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", '{"schema":2,"results":[]}', '{"schema":1,"results":[{"at_s":1}]}', "x" * 10_000],
)
def test_a_damaged_file_is_an_empty_history(content: str, tmp_path: Path) -> None:
    folder = tmp_path / "state"
    add(folder, False)
    file_in(folder).write_text(content)
    assert len(add(folder, False)) == 1
    assert len(add(folder, False, at_s=NOW + 1)) == 2


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_can_write_to_is_not_believed(mode: int, tmp_path: Path) -> None:
    folder = tmp_path / "state"
    add(folder, False)
    file_in(folder).chmod(mode)
    with pytest.raises(UsageError, match="nobody else can write to"):
        add(folder, False)


def test_a_link_a_fifo_and_an_open_folder_are_not_believed(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    add(folder, False)
    file_in(folder).rename(tmp_path / "elsewhere")
    file_in(folder).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="cannot be read"):
        add(folder, False)
    file_in(folder).unlink()
    os.mkfifo(file_in(folder))
    with pytest.raises(UsageError, match="expected a file"):
        add(folder, False)
    folder.chmod(0o777)
    with pytest.raises(UsageError, match="expected a directory"):
        add(folder, False)
    (tmp_path / "link").symlink_to(folder)
    with pytest.raises(UsageError, match="expected a directory"):
        add(tmp_path / "link", False)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_user_is_not_believed(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    add(folder, False)
    os.chown(file_in(folder), 65534, 65534)
    with pytest.raises(UsageError, match="expected a file of this user"):
        add(folder, False)
    os.chown(folder, 65534, 65534)
    with pytest.raises(UsageError, match="expected a directory of this user"):
        add(folder, False)


@pytest.mark.parametrize("name", ["../x", "", "a/b", "-x", "node1\n", ".."])
def test_a_name_that_is_none_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is no name of a node"):
        record(str(tmp_path), name, Result(NOW, True))
