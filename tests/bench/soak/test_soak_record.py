"""The file of a soak: every block is on disk, and a kill costs one line at most."""

from __future__ import annotations

import errno
import os
import threading
import time
from pathlib import Path

import pytest

from ncclcheck import timeouts
from ncclcheck.bench.soak.series_folder import FILE, lines_in, saved_soak
from ncclcheck.bench.soak.soak_record import SoakRecord
from ncclcheck.model.benchmarks.soak import SoakEnd, SoakLost
from ncclcheck.model.fact import Missing
from tests.soak_builders import soak_block, soak_start


def test_a_block_is_in_the_file_as_soon_as_it_is_added(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "soak"
    record = SoakRecord(str(folder))
    record.begin(soak_start())
    for number in range(3):
        record.add(soak_block(number))
        assert len((folder / FILE).read_bytes().splitlines()) == number + 2
    judge = lines_in(str(folder))
    assert not isinstance(judge, Missing)
    assert judge.result().blocks == 3
    assert not judge.result().is_finished
    record.end(SoakEnd(0.0, is_finished=True))
    record.end(SoakEnd(0.0, is_finished=True))
    assert len((folder / FILE).read_bytes().splitlines()) == 5


def test_a_series_is_not_written_over_and_goes_on_where_a_line_begins(tmp_path: Path) -> None:
    record = SoakRecord(str(tmp_path))
    record.begin(soak_start())
    record.add(soak_block(0))
    os.close(record._descriptor)  # killed here
    with (tmp_path / FILE).open("ab") as file:
        file.write(b'{"type":"block","num')
    with pytest.raises(FileExistsError):
        SoakRecord(str(tmp_path))
    judge = lines_in(str(tmp_path))
    assert not isinstance(judge, Missing)
    assert judge.next_number == 1
    again = SoakRecord(str(tmp_path), judge)
    again.begin(soak_start(soak_start().at_s + 100))
    again.add(soak_block(1, at_s=soak_start().at_s + 100))
    read = lines_in(str(tmp_path))
    assert not isinstance(read, Missing)
    assert (read.result().blocks, read.result().unreadable, len(read.result().gaps)) == (2, 1, 1)


def test_a_full_disk_ends_no_soak_and_is_told(tmp_path: Path) -> None:
    (tmp_path / FILE).symlink_to("/dev/full")
    judge = SoakRecord(str(tmp_path / "other")).judge
    record = SoakRecord(str(tmp_path), judge)
    record.begin(soak_start())
    record.add(soak_block(0))
    assert record.lost == "No space left on device"
    assert record.judge.result().blocks == 1


def test_a_folder_without_a_series_is_missing(tmp_path: Path) -> None:
    assert isinstance(lines_in(str(tmp_path)), Missing)
    (tmp_path / FILE).write_bytes(b"")
    found = lines_in(str(tmp_path))
    assert isinstance(found, Missing)
    assert "no series" in found.detail


def test_a_folder_that_another_soak_writes_is_refused(tmp_path: Path) -> None:
    first = SoakRecord(str(tmp_path))
    first.begin(soak_start())
    judge = lines_in(str(tmp_path))
    assert not isinstance(judge, Missing)
    with pytest.raises(OSError, match="another soak writes"):
        SoakRecord(str(tmp_path), judge)
    first.end(SoakEnd(0.0, is_finished=True))
    SoakRecord(str(tmp_path), judge).begin(soak_start())


def test_a_line_that_did_not_fit_is_taken_back_and_costs_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = SoakRecord(str(tmp_path))
    really, calls = os.write, iter([True])

    def half(descriptor: int, data: bytes) -> int:
        if next(calls, False):
            really(descriptor, data[:20])
            raise OSError(errno.ENOSPC, "No space left on device")
        return really(descriptor, data)

    monkeypatch.setattr(os, "write", half)
    record.begin(soak_start())
    assert record.lost == "No space left on device"
    record.add(soak_block(0))
    calls = iter([True])
    record.add(soak_block(1))
    record.add(soak_block(2))
    read = lines_in(str(tmp_path))
    assert not isinstance(read, Missing)
    soak = read.result()
    assert (soak.blocks, soak.unreadable) == (2, 0)
    assert [(gap.from_s, gap.to_s) for gap in soak.gaps] == [(10.0, 20.0)]


def test_a_disk_that_does_not_answer_holds_up_no_soak(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timeouts, "SOAK_WRITE_S", 0.1)
    held = threading.Event()
    record = SoakRecord(str(tmp_path))
    monkeypatch.setattr(os, "fsync", lambda _: held.wait(60))
    record.begin(soak_start())
    record.add(soak_block(0))
    assert "does not answer" in record.lost
    assert record.judge.result().blocks == 1
    held.set()
    deadline = time.monotonic() + 60
    while record.is_held_up and time.monotonic() < deadline:
        time.sleep(0.01)
    record.add(soak_block(1))
    record.end(SoakEnd(0.0, is_finished=True))
    read = lines_in(str(tmp_path))
    assert not isinstance(read, Missing)
    assert read.result().blocks == 1


def test_a_saved_series_has_the_ranks_that_ended_it(tmp_path: Path) -> None:
    record = SoakRecord(str(tmp_path))
    record.begin(soak_start())
    record.end(SoakEnd(0.0, False, "", (SoakLost(1, "node02", "hang", "stuck"),)))
    bench = saved_soak(record.judge)
    assert [failure.host for failure in bench.failures] == ["node02"]
    assert bench.soak is not None
    assert bench.soak.events[0].kind == "hang"
