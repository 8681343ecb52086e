"""Files and links that name the checkpoint to resume from."""

from __future__ import annotations

from pathlib import Path

import pytest

from ncclcheck.facts.checkpoints.pointers import LATEST, TRACKER, of_file, of_link


@pytest.mark.parametrize(
    ("file", "text", "there", "names"),
    [
        (LATEST, "global_step20\n", "global_step20", "global_step20"),
        (LATEST, "./global_step20/\n", "global_step20", "global_step20"),
        (TRACKER, "20", "iter_0000020", "iter_0000020"),
        (TRACKER, "20", "global_step_20", "global_step_20"),  # verl
        (TRACKER, "release", "release", "release"),
        ("last_checkpoint", "work_dirs/run/epoch_3.pth", "epoch_3.pth", "epoch_3.pth"),  # MMEngine
    ],
)
def test_the_name_in_a_file(tmp_path: Path, file: str, text: str, there: str, names: str) -> None:
    (tmp_path / there).mkdir()
    (tmp_path / file).write_text(text)
    pointed = of_file(tmp_path / file)
    assert (pointed.pointer.names, pointed.pointer.is_there) == (names, True)
    assert pointed.place == tmp_path / names


def test_a_path_out_of_the_folder_stays_whole(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere" / "step-300"
    elsewhere.mkdir(parents=True)
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / LATEST).write_text(str(elsewhere))
    pointed = of_file(tmp_path / "here" / LATEST)
    assert (pointed.pointer.names, pointed.place) == (str(elsewhere), elsewhere)
    elsewhere.rmdir()
    pointed = of_file(tmp_path / "here" / LATEST)
    assert (pointed.pointer.is_there, pointed.place) == (False, None)


def test_an_absolute_path_of_the_folder_itself_is_a_name_in_it(tmp_path: Path) -> None:
    (tmp_path / "step-3").mkdir()
    (tmp_path / LATEST).write_text(str(tmp_path / "step-3"))
    assert of_file(tmp_path / LATEST).name == "step-3"


@pytest.mark.parametrize("data", [b"", b"\n", bytes(16)])
def test_an_empty_file_names_nothing(tmp_path: Path, data: bytes) -> None:
    (tmp_path / LATEST).write_bytes(data)
    assert of_file(tmp_path / LATEST).pointer.names == ""


def test_a_link_leads_here_or_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "run" / "step-1").mkdir(parents=True)
    (tmp_path / "step-1").mkdir()
    (tmp_path / "run" / "last").symlink_to("step-1")
    (tmp_path / "run" / "best").symlink_to("../step-1")
    assert of_link(tmp_path / "run" / "last").name == "step-1"
    assert of_link(tmp_path / "run" / "best").name == str(tmp_path / "step-1")
