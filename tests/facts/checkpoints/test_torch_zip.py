"""What torch.save wrote beside the tensors."""

from __future__ import annotations

import os
import time
import zipfile
from pathlib import Path

import pytest

from ncclcheck.facts.checkpoints.listing import files_of
from ncclcheck.facts.checkpoints.torch_zip import Unread, read_saved
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
    gone = read_saved(files, "gone.pt")
    assert isinstance(gone, Unread)
    assert not gone.is_damaged


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2])
@pytest.mark.parametrize("how", ["encrypted", "damaged"])
def test_a_zip_that_cannot_be_unpacked_is_damaged(tmp_path: Path, method: int, how: str) -> None:
    with zipfile.ZipFile(tmp_path / "a.pt", "w", compression=method) as archive:
        archive.writestr("archive/data.pkl", os.urandom(50) * 100)
    data = bytearray((tmp_path / "a.pt").read_bytes())
    if how == "encrypted":
        data[6] |= 1  # APPNOTE 4.4.4: bit 0 of the flags, in the file's own header and in the directory
        data[data.find(b"PK\x01\x02") + 8] |= 1
    else:
        data[50:90] = b"\xff" * 40
    (tmp_path / "a.pt").write_bytes(data)
    found = read_saved(files_of(tmp_path, time.monotonic() + 10), "a.pt")
    assert isinstance(found, Unread)
    assert found.is_damaged
    assert found.reason.startswith("cannot be unpacked (")


@pytest.mark.parametrize("name", ["archive/data.pkl", "archive/else.pkl"])
def test_a_zip_without_an_object_tells_nothing_and_is_not_called_damaged(tmp_path: Path, name: str) -> None:
    with zipfile.ZipFile(tmp_path / "a.pt", "w") as archive:
        archive.writestr(name, b"no pickle")
    found = read_saved(files_of(tmp_path, time.monotonic() + 10), "a.pt")
    assert isinstance(found, Unread)
    assert not found.is_damaged
