"""DeepSpeed's `latest` inside a checkpoint of Hugging Face's libraries."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from ncclcheck.facts.checkpoints.kinds.deepspeed_pointer import inner_pointer
from ncclcheck.facts.checkpoints.listing import files_of
from tests.facts.checkpoints import checkpoint_folders as written
from tests.facts.checkpoints.reading import lacks, why_unknown


@pytest.fixture
def of_trainer(tmp_path: Path) -> Path:
    written.save_deepspeed(tmp_path / "global_step5", 1)
    (tmp_path / "trainer_state.json").write_text("{}")
    (tmp_path / "latest").write_text("global_step5")
    return tmp_path


def says_nothing(folder: Path) -> bool:
    return inner_pointer(files_of(folder, time.monotonic() + 30)) is None


def test_one_that_names_a_folder_which_is_there_is_right(of_trainer: Path) -> None:
    assert says_nothing(of_trainer)


def test_one_that_names_what_is_not_there(of_trainer: Path) -> None:
    (of_trainer / "latest").write_text("global_step6")
    assert lacks(inner_pointer, of_trainer).missing == ("global_step6/",)
    (of_trainer / "latest").write_text("")
    assert why_unknown(inner_pointer, of_trainer) == "latest is empty"


def test_the_trainer_needs_it_and_accelerate_does_not(of_trainer: Path) -> None:
    (of_trainer / "latest").unlink()
    assert lacks(inner_pointer, of_trainer).missing == ("latest",)
    (of_trainer / "trainer_state.json").unlink()
    assert says_nothing(of_trainer)
