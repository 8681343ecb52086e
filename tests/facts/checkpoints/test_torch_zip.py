"""What torch.save wrote beside the tensors."""

from __future__ import annotations

import time
from pathlib import Path

from ncclcheck.facts.checkpoints.listing import files_of
from ncclcheck.facts.checkpoints.torch_zip import read_saved
from tests.facts.checkpoints import checkpoint_folders as written


def test_numbers_beside_tensors_are_read(tmp_path: Path) -> None:
    written.save_deepspeed(tmp_path, data_ranks=2)
    told = read_saved(files_of(tmp_path, time.monotonic() + 10), "mp_rank_00_model_states.pt")
    assert isinstance(told, dict)
    assert told["dp_world_size"] == 2


def test_what_is_no_zip_tells_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.pt").write_bytes(b"garbage")
    files = files_of(tmp_path, time.monotonic() + 10)
    assert read_saved(files, "a.pt") is None
    assert read_saved(files, "gone.pt") is None
