"""What lies in a folder of checkpoints."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from ncclcheck.facts.checkpoints import entries
from ncclcheck.facts.checkpoints.entries import Entries, entries_of


def listed(folder: Path) -> Entries:
    return entries_of(folder, time.monotonic() + 30)


def newest_first(folder: Path) -> list[str]:
    found = sorted(listed(folder).candidates, key=lambda candidate: candidate.rank, reverse=True)
    return [candidate.name for candidate in found]


def test_the_order_is_last_then_the_step_then_the_epoch_then_time(tmp_path: Path) -> None:
    for name in ("last.ckpt", "epoch=2-val_loss=0.31.ckpt", "epoch=10-val_loss=0.25.ckpt", "other.ckpt"):
        (tmp_path / name).touch()
    assert newest_first(tmp_path) == [
        *("last.ckpt", "epoch=10-val_loss=0.25.ckpt", "epoch=2-val_loss=0.31.ckpt", "other.ckpt")
    ]


def test_files_of_ranks_are_one_checkpoint(tmp_path: Path) -> None:
    for rank in range(3):
        (tmp_path / f"step10_rank{rank}.pt").write_bytes(b"12")
    (found,) = listed(tmp_path).candidates
    assert found.name == "step10_rank*.pt"
    assert found.files(time.monotonic() + 30).sizes == {f"step10_rank{rank}.pt": 2 for rank in range(3)}


def test_what_is_no_checkpoint_or_was_moved_away_is_left_out(tmp_path: Path) -> None:
    for name in ("incomplete-step-3.pt", "image.png", "model.bin"):
        (tmp_path / name).touch()
    (tmp_path / "tokenizer").symlink_to("image.png")
    assert listed(tmp_path).candidates == ()


def test_a_folder_of_deepspeed_is_a_part_beside_state_of_the_trainer(tmp_path: Path) -> None:
    (tmp_path / "global_step5").mkdir()
    assert [found.name for found in listed(tmp_path).attempts] == ["global_step5"]
    (tmp_path / "trainer_state.json").touch()
    assert listed(tmp_path).attempts == ()


def test_more_entries_than_are_listed_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entries, "MOST_ENTRIES", 2)
    for number in range(3):
        (tmp_path / str(number)).touch()
    assert listed(tmp_path).cut.startswith("only 2 of its entries")
