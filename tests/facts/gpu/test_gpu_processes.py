"""Processes on a GPU: named from /proc, and told from this run's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from ncclcheck.facts.gpu.gpu_processes import described
from ncclcheck.model.fact import Missing
from ncclcheck.model.gpu import GpuProcess


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """1 init, 10 a shell, 20 this run below it, 30 its child, 40 another rank, 50 a stranger with an odd name."""
    for pid, parent, name, command in (
        (1, 0, "init", "/sbin/init"),
        (10, 1, "bash", "bash"),
        (20, 10, "python", "python\0-m\0ncclcheck\0preflight"),
        (30, 20, "python", "python\0-S\0-c"),
        (40, 10, "ncclcheck", "/opt/venv/bin/ncclcheck\0preflight"),
        (50, 10, "a) 20 (b", "python\0train.py\0--name\0ncclcheck"),
    ):
        folder = tmp_path / str(pid)
        folder.mkdir()
        (folder / "comm").write_text(name + "\n")
        (folder / "stat").write_text(f"{pid} ({name}) S {parent} 1 1 0")
        (folder / "cmdline").write_text(command + "\0")
    return tmp_path


@pytest.mark.parametrize(
    ("pid", "own"), [(20, True), (30, True), (40, True), (10, False), (50, False), (1, False)]
)
def test_the_own_ones_are_this_run_and_what_it_started(proc: Path, pid: int, own: bool) -> None:
    assert described([GpuProcess(pid, 1)], proc, 20)[0].own is own


def test_a_name_is_kept_as_it_is(proc: Path) -> None:
    assert described([GpuProcess(50, 1)], proc, 20)[0].name == "a) 20 (b"


def test_a_process_of_another_container_has_no_name_and_is_not_ours(proc: Path) -> None:
    stranger = described([GpuProcess(4711, 1)], proc, 20)[0]
    assert isinstance(stranger.name, Missing)
    assert not stranger.own
