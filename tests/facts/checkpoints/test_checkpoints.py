"""The section: each folder in a process of its own, by its deadline."""

from __future__ import annotations

from pathlib import Path

from ncclcheck.facts.checkpoints.checkpoints import read_checkpoints
from ncclcheck.model.fact import Missing
from tests.fact_builders import some
from tests.facts.checkpoints import checkpoint_folders as written


def test_all_folders_are_read(tmp_path: Path) -> None:
    written.save_dcp(tmp_path / "a" / "step_1")
    (tmp_path / "b").mkdir()
    first, second, third = read_checkpoints([str(tmp_path / name) for name in "abc"], 20)
    assert some(first.checkpoints)[0].complete is True
    assert second.checkpoints == ()
    assert isinstance(third.checkpoints, Missing)
    assert third.checkpoints.missing == "absent"


def test_one_that_does_not_answer_is_late(tmp_path: Path) -> None:
    (found,) = read_checkpoints([str(tmp_path)], 0.001)
    assert isinstance(found.checkpoints, Missing)
    assert found.checkpoints.missing == "timeout"
