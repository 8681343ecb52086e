"""What a second terminal is told of a watched job."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ncclcheck.cli.watching.status import Status, remove_status, show_status, write_status
from ncclcheck.model.errors import UsageError
from tests.cli.command_line import clean_environment, ncclcheck, refused

ROOT = Path(__file__).parents[3]


def _left(folder: Path, host: str, at_s: float, **changes: object) -> None:
    (folder / host).mkdir()
    usual = {"look_s": 5.0, "ranks": (0, 1), "still_s": 0.0, **changes}
    write_status(folder / host, Status(host, 4711, at_s, **usual))  # type: ignore[arg-type]


def test_each_watcher_has_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _left(tmp_path, "node1", time.time())
    _left(tmp_path, "node2", time.time(), still_s=30.0, led=True)
    _left(tmp_path, "node3", time.time() - 600)
    (tmp_path / "node4").mkdir()
    (tmp_path / "node4" / "status.json").write_text("[")
    assert show_status(str(tmp_path)) == 3  # node3 is silent
    assert capsys.readouterr().out.splitlines() == [
        "node1 (pid 4711): ranks 0-1, advancing, decides alone",
        "node2 (pid 4711): ranks 0-1, nothing moved for 30 s, node 0 decides",
        "node3 (pid 4711): no look for 600 s: the watcher was killed, or hangs",
    ]


def test_watchers_that_look_and_found_nothing_give_0_and_a_finding_counts_more_than_a_late_one(
    tmp_path: Path,
) -> None:
    _left(tmp_path, "node1", time.time())
    assert show_status(str(tmp_path)) == 0
    _left(tmp_path, "node2", time.time() - 3600)
    assert show_status(str(tmp_path)) == 3
    _left(tmp_path, "node3", time.time(), decision="died", sentence="rank 1 ended")
    assert show_status(str(tmp_path)) == 1


def test_what_is_no_plain_file_is_not_read(tmp_path: Path) -> None:
    for name in ("pipe", "zero", "link", "huge"):
        (tmp_path / name).mkdir()
    os.mkfifo(tmp_path / "pipe" / "status.json")  # nobody writes
    (tmp_path / "zero" / "status.json").symlink_to("/dev/zero")
    (tmp_path / "link" / "status.json").symlink_to(tmp_path / "node1" / "status.json")
    with (tmp_path / "huge" / "status.json").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(UsageError, match="no watcher is at work there"):
        show_status(str(tmp_path))
    _left(tmp_path, "node1", time.time() - 600)
    assert show_status(str(tmp_path)) == 3


def test_a_finding_is_told_and_gives_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _left(tmp_path, "node1", time.time(), decision="hang", sentence="the job hangs: rank 1")
    assert show_status(str(tmp_path)) == 1
    assert "; the job hangs: rank 1" in capsys.readouterr().out
    remove_status(tmp_path / "node1")
    with pytest.raises(UsageError, match="no watcher is at work there"):
        show_status(str(tmp_path))


def test_a_second_terminal_sees_a_job_that_runs_and_nothing_is_left_of_it(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    words = [sys.executable, "-m", "ncclcheck", "watch", "-q", "--dir", str(kept), "--", "sh", "-c", "read a"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, env=clean_environment(PYTHONPATH=str(ROOT))) as watch:
        deadline = time.monotonic() + 60
        while not list(kept.glob("*/status.json")):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        done = ncclcheck("watch", "--dir", str(kept), "--status")
        assert done.code == 0
        assert f"(pid {watch.pid}): no rank yet" in done.out
        memory = Path(f"/proc/{watch.pid}/status").read_text().partition("RssAnon:")[2].split()[0]
        assert int(memory) < 60 * 1024  # KiB of its own; what it shares with files depends on the machine
        assert "libtorch" not in Path(f"/proc/{watch.pid}/maps").read_text()
        assert watch.stdin is not None
        watch.stdin.write(b"\n")
        watch.stdin.close()
        assert watch.wait(60) == 0
    assert list(kept.iterdir()) == []
    assert "give --dir DIR" in refused(ncclcheck("watch", "--status"))
