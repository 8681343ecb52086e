"""A run's values in files, seen by two nodes, beside what earlier runs and other users left."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.store.base import VALUE_LIMIT_BYTES
from ncclcheck.exchange.store.run_folder import (
    FolderMember,
    FolderView,
    RunFolder,
    read_file,
    touch,
    write_file,
)
from ncclcheck.model.codec import decode

DIGEST = "0123456789abcdef"


def place(folder: Path, host: str) -> FolderMember:
    return FolderMember(folder, DIGEST, host, "nfs4")


def look(meeting_place: FolderMember) -> FolderView:
    return decode(meeting_place.look(), FolderView)


def test_what_one_node_sets_the_other_reads(tmp_path: Path) -> None:
    one, other = RunFolder(tmp_path), RunFolder(tmp_path)
    assert other.read("hello/1") is None
    one.set("hello/1", b"\x00")
    assert other.read("hello/1") == b"\x00"
    one.set("hello/1", b"again")
    assert other.read("hello/1") == b"again"
    assert other.read("hello") is None
    assert other.read("../hello/1") is None


def test_no_number_is_counted_twice(tmp_path: Path) -> None:
    found: list[int] = []

    def count() -> None:
        node = RunFolder(tmp_path)
        found.extend(node.add("tickets", 1) for _ in range(20))

    threads = [threading.Thread(target=count) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(found) == list(range(1, 161))
    assert RunFolder(tmp_path).add("tickets", 0) == 160
    assert RunFolder(tmp_path).read("tickets") == b"160"


def test_the_others_find_node_0_once_it_shows_that_it_is_alive(tmp_path: Path) -> None:
    first, second = place(tmp_path, "node01"), place(tmp_path, "node02")
    assert look(second) == FolderView(False, ("node01",), "nfs4")
    first.open_run()
    assert not look(second).found
    first.beat()
    assert look(second).found
    assert first.run is not None
    assert second.run is not None
    assert second.run.path == first.run.path
    assert first.run.path.stat().st_mode & 0o777 == 0o700


def test_node_0_is_told_from_the_others_before_its_run_is_alive(tmp_path: Path) -> None:
    first = FolderMember(tmp_path, DIGEST, "node01", "nfs4", leads=True)
    second = place(tmp_path, "node02")
    assert look(second) == FolderView(False, ("node01",), "nfs4", "node01")
    first.close()
    assert look(second).first == "node01"  # it was there


def test_a_mark_of_node_0_that_an_earlier_run_left_is_not_that_of_this_one(tmp_path: Path) -> None:
    FolderMember(tmp_path, DIGEST, "node09", "nfs4", leads=True)
    (mark,) = tmp_path.iterdir()
    os.utime(mark, (0, mark.stat().st_mtime - 400))
    assert look(place(tmp_path, "node02")) == FolderView(False, ("node09",), "nfs4")


def test_what_somebody_puts_beside_a_mark_does_not_keep_a_node_from_looking(tmp_path: Path) -> None:
    second = place(tmp_path, "node02")
    (mark,) = tmp_path.iterdir()
    mark.with_name(f"{mark.name}-look").symlink_to("/nowhere")
    assert look(second) == FolderView(False, (), "nfs4")
    assert len(list(tmp_path.iterdir())) == 2


def test_a_run_that_was_killed_is_never_found(tmp_path: Path) -> None:
    dead, new = place(tmp_path, "node01"), place(tmp_path, "node01")
    dead.open_run()
    second = place(tmp_path, "node02")
    for _ in range(3):
        assert not look(second).found
    new.open_run()
    look(second)
    new.beat()
    assert look(second).found
    assert second.run is not None
    assert new.run is not None
    assert second.run.path == new.run.path


@pytest.mark.slow
def test_a_node_0_that_is_gone_is_not_waited_for(tmp_path: Path) -> None:
    first = place(tmp_path, "node01")
    first.open_run()
    assert first.run is not None
    second = RunFolder(first.run.path, dead_s=0.2)
    first.run.set("a", b"1")
    assert second.read("nothing") is None
    first.beat()
    assert second.read("a") == b"1"
    deadline = Deadline(0.6)
    while not deadline.passed:
        second.read("a")
    second.read("nothing")  # sees the last beat
    deadline = Deadline(0.6)
    while not deadline.passed:
        second.read("a")
    with pytest.raises(OSError, match="no sign of life"):
        second.read("nothing")
    first.close()
    with pytest.raises(OSError, match="No such file"):
        RunFolder(first.run.path, dead_s=60).read("nothing")


@pytest.mark.parametrize(("mode", "is_open"), [(0o755, False), (0o1777, False), (0o777, True)])
def test_a_folder_in_which_any_user_may_remove_files_is_open(
    tmp_path: Path, mode: int, is_open: bool
) -> None:
    tmp_path.chmod(mode)
    assert look(place(tmp_path, "node01")).is_open is is_open


def test_another_job_and_a_link_are_passed_over(tmp_path: Path) -> None:
    other = FolderMember(tmp_path, "f" * 16, "node01", "")
    other.open_run()
    target = tmp_path / "elsewhere"
    target.mkdir()
    (tmp_path / f".ncclcheck-{DIGEST}-run-0").symlink_to(target)
    second = place(tmp_path, "node02")
    for number in range(3):
        other.beat()
        write_file(target / ".alive", str(number).encode())
        assert look(second) == FolderView(False, (), "nfs4")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of another user")
def test_what_others_left_under_such_a_name_stops_nobody(tmp_path: Path) -> None:
    first, second = place(tmp_path, "node01"), place(tmp_path, "node02")
    for kind in ("here", "run"):
        start = f".ncclcheck-{DIGEST}-{kind}-"
        (tmp_path / f"{start}0").symlink_to("/etc/passwd")
        (tmp_path / f"{start}1").mkdir()
        (tmp_path / f"{start}2").write_bytes(bytes(5000))
        os.mkfifo(tmp_path / f"{start}3")
    first.open_run()
    look(second)
    first.beat()
    assert look(second) == FolderView(True, ("node01",), "nfs4")


def test_a_node_that_was_there_is_remembered(tmp_path: Path) -> None:
    first, second = place(tmp_path, "node01"), place(tmp_path, "node02")
    assert look(second).others == ("node01",)
    first.close()
    assert look(second).others == ("node01",)


def test_a_fifo_holds_nobody(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x")
    with pytest.raises(OSError, match="No such device"):
        touch(tmp_path / "x")


def test_a_run_of_another_user_is_not_joined(tmp_path: Path) -> None:
    foreign, second = place(tmp_path, "node01"), place(tmp_path, "node02")
    foreign.open_run()
    assert foreign.run is not None
    os.chown(foreign.run.path, 12345, -1)
    for _ in range(3):
        foreign.beat()
        assert not look(second).found


def test_nothing_stays(tmp_path: Path) -> None:
    first, second = place(tmp_path, "node01"), place(tmp_path, "node02")
    first.open_run()
    assert first.run is not None
    first.run.set("a", b"1")
    first.run.add("n", 3)
    second.close()
    first.close()
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_run_left_is_removed_once_it_is_old(tmp_path: Path) -> None:
    dead = place(tmp_path, "node01")
    dead.open_run()
    assert dead.run is not None
    dead.run.set("a", b"1")
    other = FolderMember(tmp_path, "f" * 16, "node01", "")
    new = place(tmp_path, "node01")
    new.open_run()
    assert dead.run.path.exists()
    new.close()
    for path in tmp_path.iterdir():
        os.utime(path, (0, 0))
    newer = place(tmp_path, "node01")
    newer.open_run()
    newer.close()
    (left,) = tmp_path.iterdir()
    other.close()
    assert "f" * 16 in left.name


def test_what_is_too_large_or_no_file_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(bytes(VALUE_LIMIT_BYTES + 1))
    with pytest.raises(OSError, match="too large"):
        read_file(tmp_path / "large", VALUE_LIMIT_BYTES)
    (tmp_path / "link").symlink_to(tmp_path / "large")
    with pytest.raises(OSError, match="symbolic"):
        read_file(tmp_path / "link", 10)
    assert read_file(tmp_path / "none", 10) is None
