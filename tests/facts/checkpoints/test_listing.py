"""The files of a checkpoint, and the step in its name."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from ncclcheck.facts.checkpoints.listing import files_of, step_of


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("global_step100", 100),
        ("iter_0001000", 1000),
        ("checkpoint-500", 500),
        ("epoch=3-step=1000.ckpt", 1000),
        ("epoch=3-step=1000-v2.ckpt", 1000),
        ("step_7_of_run2", 7),
        ("model_12.pt", 12),
        ("last.ckpt", None),
        ("release", None),
    ],
)
def test_the_step_in_a_name(name: str, step: int | None) -> None:
    assert step_of(name) == step


def test_names_and_sizes_of_all_files_below(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "c").write_bytes(b"12345")
    (tmp_path / "gone").symlink_to("nowhere")
    found = files_of(tmp_path, time.monotonic() + 10)
    assert found.sizes == {"a/b/c": 5}
    assert found.cut is None
    digest = found.digest
    (tmp_path / "a" / "b" / "c").write_bytes(b"123456")
    assert files_of(tmp_path, time.monotonic() + 10).digest != digest


def test_what_was_not_listed_in_the_time_is_said(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / str(number)).touch()
    assert "only 1 files" in str(files_of(tmp_path, time.monotonic() - 1).cut)


def test_a_long_file_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "long").write_bytes(bytes(10))
    found = files_of(tmp_path, time.monotonic() + 10)
    assert found.read("long", 9) is None
    assert found.read("long", 10) == bytes(10)
    assert found.ends("long", 2, 3) == (bytes(2), bytes(3))
