"""Files as people have them: packed, cut, growing, in folders, or unreadable."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from ncclcheck.logs.log_files import CHUNK_BYTES, read_logs
from ncclcheck.model.errors import UsageError

LINE = "[rank3]: ValueError: x\n"


def write(path: Path, data: bytes | str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return str(path)


def test_plain_and_packed_say_the_same(tmp_path: Path) -> None:
    plain = read_logs([write(tmp_path / "a.log", LINE)])
    packed = read_logs(
        [write(tmp_path / "b.log.gz", gzip.compress(LINE.encode()) + gzip.compress(LINE.encode()))]
    )
    assert len(plain.events) == 1
    assert [event.place.line for event in packed.events] == [1, 2]


def test_a_cut_gzip_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    data = gzip.compress((LINE + os.urandom(3000).hex()).encode())
    log = read_logs([write(tmp_path / "c.gz", data[:-40])])
    assert log.files[0].unread == "truncated gzip"
    assert len(log.events) == 1


def test_a_damaged_gzip_is_named(tmp_path: Path) -> None:
    good = write(tmp_path / "good.log", LINE)
    log = read_logs([good, write(tmp_path / "d.gz", b"\x1f\x8b\x08" + b"x" * 50)])
    assert "damaged gzip" in log.files[1].unread


def test_a_bomb_is_not_unpacked(tmp_path: Path) -> None:
    log = read_logs([write(tmp_path / "bomb.gz", gzip.compress((b"x" * 999 + b"\n") * 100_000))])
    assert "unpacks to more than" in log.files[0].unread
    assert log.files[0].lines < 90_000


def test_folders_are_searched_and_links_in_circles_are_not_followed(tmp_path: Path) -> None:
    for rank in (10, 2):
        write(tmp_path / "logs" / f"rank{rank}.log", LINE)
    (tmp_path / "logs" / "again").symlink_to(tmp_path / "logs")
    (tmp_path / "logs" / "same.log").symlink_to(tmp_path / "logs" / "rank2.log")
    log = read_logs([str(tmp_path)])
    assert [Path(file.name).name for file in log.files] == ["rank2.log", "rank10.log"]


def test_what_cannot_be_read_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        read_logs([str(tmp_path / "missing")])
    with pytest.raises(UsageError, match="no file to read"):
        read_logs([str(tmp_path)])
    with pytest.raises(UsageError, match="not a file of text"):
        read_logs(["/dev/zero"])


def test_a_fifo_is_read_to_its_end(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    writer = threading.Thread(target=lambda: fifo.write_text(LINE))
    writer.start()
    log = read_logs([str(fifo)])
    writer.join(5)
    assert len(log.events) == 1


def test_standard_input() -> None:
    argv = [sys.executable, "-m", "ncclcheck", "explain", "-"]
    done = subprocess.run(argv, input=LINE, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "rank-exception" in done.stdout
    assert "standard input:1" in done.stdout


def test_a_hole_of_any_size_and_zeros_are_no_text_and_cost_no_time(tmp_path: Path) -> None:
    path = tmp_path / "sparse.log"
    with path.open("wb") as file:
        file.write(LINE.encode())
        file.write(bytes(3 << 20))
        file.seek(200 << 30)
        file.write(b"\n" + LINE.encode())
        file.truncate(300 << 30)
    began = time.process_time()
    log = read_logs([str(path)])
    assert time.process_time() - began < 5
    assert {event.place.line for event in log.events} == {1, 3}
    assert log.files[0].size_bytes == 300 << 30


def test_how_far_a_large_file_is_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ncclcheck.logs.log_files.READING_TOLD_S", 0.0)
    path = write(tmp_path / "large.log", LINE * (3 * CHUNK_BYTES // len(LINE)))
    said: list[str] = []
    read_logs([path], said.append)
    assert said[-1] == f"reading {path}: 0.0 of 0.0 GB"


def test_a_file_that_grows_is_read_as_far_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "grows.log"
    write(path, LINE * 3)
    assert read_logs([str(path)]).files[0].lines == 3
