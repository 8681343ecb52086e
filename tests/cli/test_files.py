"""Files are read whole and written whole, or refused with a sentence."""

from __future__ import annotations

import os
import threading
import tracemalloc
from pathlib import Path

import pytest

from ncclcheck.cli import files
from ncclcheck.cli.files import LIMIT_BYTES, read_bytes, read_text, refuse_unwritable, write_atomically
from ncclcheck.model.errors import UsageError


def test_what_is_written_is_read_back_and_nothing_is_left_behind(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    write_atomically(str(file), "first", "--output")
    write_atomically(str(file), "größer\n", "--output")
    assert read_text(str(file), "--from") == "größer\n"
    assert list(tmp_path.iterdir()) == [file]


def test_a_new_file_has_the_mode_that_others_get(tmp_path: Path) -> None:
    write_atomically(str(tmp_path / "new"), "x", "--output")
    (tmp_path / "plain").write_text("x")
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_file_keeps_its_mode_and_a_link_its_target(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to(target)
    write_atomically(str(link), "new", "--output")
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert target.stat().st_mode & 0o777 == 0o640


def test_a_device_is_written_to_not_replaced() -> None:
    write_atomically("/dev/null", "x", "--output")
    assert not Path("/dev/null").is_file()


def test_half_a_surrogate_pair_does_not_lose_the_report(tmp_path: Path) -> None:
    write_atomically(str(tmp_path / "a"), "x\udcff", "--output")
    assert (tmp_path / "a").read_text() == "x\\udcff"


@pytest.mark.parametrize("name", ["missing.json", "", "fifo", "directory", "nul\0"])
def test_what_cannot_be_read_is_refused_at_once(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "directory").mkdir()
    with pytest.raises(UsageError, match="--from"):
        read_bytes(str(tmp_path / name), "--from")


def test_the_mark_at_the_beginning_is_no_part_of_a_text(tmp_path: Path) -> None:
    (tmp_path / "site.toml").write_bytes(b"\xef\xbb\xbfnodes = 2\r\n")
    assert read_text(str(tmp_path / "site.toml"), "--expect") == "nodes = 2\r\n"


def test_what_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"ab\xff")
    with pytest.raises(UsageError, match=r"not UTF-8 text: .* at byte 2"):
        read_text(str(tmp_path / "a"), "--expect")


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("", "is a directory"),
        ("no/such/file", "there is no directory"),
        ("nul\0/x", "no directory|cannot be"),
    ],
)
def test_a_place_that_cannot_take_a_file_is_refused(tmp_path: Path, name: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        refuse_unwritable(str(tmp_path / name), "--output")


def test_a_place_that_can_take_a_file_is_fine(tmp_path: Path) -> None:
    refuse_unwritable(str(tmp_path / "report.json"), "--output")
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_went_away_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be written: No such file or directory"):
        write_atomically(str(tmp_path / "gone" / "a"), "x", "--output")


@pytest.mark.skipif(not os.access("/proc/kmsg", os.R_OK), reason="/proc/kmsg may not be read here")
def test_a_file_that_waits_for_its_next_line_is_refused_at_once() -> None:
    with pytest.raises(UsageError, match="--hostfile /proc/kmsg"):
        read_text("/proc/kmsg", "--hostfile")


def test_a_text_of_more_than_a_mebibyte_is_refused(tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("node01," * 200_000)
    with pytest.raises(UsageError, match="more than 1 MiB"):
        read_text(str(tmp_path / "hosts"), "--hostfile")


def test_the_saved_run_of_16384_nodes_is_accepted_and_what_is_larger_is_not_read(tmp_path: Path) -> None:
    assert LIMIT_BYTES > 16_384 * 51_000
    file = tmp_path / "saved.json"
    with file.open("wb") as stream:
        stream.truncate(LIMIT_BYTES + 1)  # a hole: it takes no space, but a gigabyte where it is read
    tracemalloc.start()
    with pytest.raises(UsageError, match="more than 1024 MiB"):
        read_bytes(str(file), "--from")
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 1 << 20


def test_a_mount_that_hangs_is_refused_after_its_deadline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "hosts"
    file.write_text("node01")
    released = threading.Event()
    monkeypatch.setattr(Path, "exists", lambda _: released.wait(30))
    monkeypatch.setattr(files, "USER_FILE_S", 0.05)
    try:
        with pytest.raises(UsageError, match=r"cannot be read: .*no answer within"):
            read_text(str(file), "--hostfile")
    finally:
        released.set()
