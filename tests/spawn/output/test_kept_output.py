"""The output of a watched job: kept, while the job writes where it would write without the watcher."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from ncclcheck.spawn.output.kept_output import MOST_BYTES
from tests.cli.command_line import clean_environment

pytestmark = pytest.mark.slow
FURTHER = pytest.mark.further

ROOT = Path(__file__).parents[3]
WATCH = [sys.executable, "-m", "ncclcheck", "watch", "-q"]
_LIMIT_S = 120


def _watch(folder: Path, *options: str) -> list[str]:
    return [*WATCH, "--dir", str(folder / "kept"), *options, "--"]


def _environ() -> dict[str, str]:
    return clean_environment(PYTHONPATH=str(ROOT))


def _kept(folder: Path, name: str) -> bytes:
    (file,) = (folder / "kept").glob(f"*/{name}")
    return file.read_bytes()


def _until(is_so: Callable[[], object]) -> None:
    deadline = time.monotonic() + _LIMIT_S
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _run(words: list[str], **streams: int) -> subprocess.CompletedProcess[bytes]:
    given = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
    return subprocess.run(words, env=_environ(), timeout=_LIMIT_S, check=False, **given)  # type: ignore[call-overload, no-any-return]


def test_what_goes_to_two_pipes_arrives_and_is_kept_apart(tmp_path: Path) -> None:
    done = _run([*_watch(tmp_path), "sh", "-c", "echo out; echo err >&2; printf end; exit 7"])
    assert (done.returncode, done.stdout) == (7, b"out\nend")
    assert b"err\n" in done.stderr
    assert _kept(tmp_path, "stdout.log") == b"out\nend"
    assert _kept(tmp_path, "stderr.log") == b"err\n"


@FURTHER
def test_one_pipe_for_both_keeps_the_order(tmp_path: Path) -> None:
    script = "i=0; while test $i -lt 200; do echo out $i; echo err $i >&2; i=$((i + 1)); done"
    done = _run([*_watch(tmp_path), "sh", "-c", script], stderr=subprocess.STDOUT)
    expected = "".join(f"out {number}\nerr {number}\n" for number in range(200)).encode()
    assert done.stdout == expected
    assert _kept(tmp_path, "output.log") == expected


@FURTHER
def test_a_job_that_worked_leaves_nothing_where_no_folder_was_asked_for(tmp_path: Path) -> None:
    done = subprocess.run(
        [*WATCH, "--", "echo", "out"],
        env={**_environ(), "TMPDIR": str(tmp_path)},
        capture_output=True,
        timeout=_LIMIT_S,
        check=True,
    )
    assert done.stdout == b"out\n"
    assert not list(tmp_path.glob("ncclcheck-watch-*"))


@pytest.mark.parametrize("code", [0, pytest.param(3, marks=FURTHER)])
def test_a_file_stays_the_job_s_own_and_its_end_is_kept(tmp_path: Path, code: int) -> None:
    log = tmp_path / "train.log"
    log.write_bytes(b"of an earlier job\n")
    with log.open("ab") as stream:
        done = _run(
            [*_watch(tmp_path), "sh", "-c", f"readlink /proc/self/fd/1; exit {code}"], stdout=stream.fileno()
        )
    assert done.returncode == code
    assert log.read_text() == f"of an earlier job\n{log}\n"
    assert _kept(tmp_path, "stdout.log") == f"{log}\n".encode()


@pytest.mark.parametrize("options", [pytest.param((), marks=FURTHER), ("--as-is",)])
def test_other_devices_and_with_as_is_all_streams_are_the_job_s_own(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    reader, writer = os.pipe()
    own = os.readlink(f"/proc/self/fd/{writer}")  # noqa: PTH115 (its text)
    try:
        words = [*_watch(tmp_path, *options), "sh", "-c", "readlink /proc/self/fd/1 /proc/self/fd/2"]
        assert _run(words, stdout=writer, stderr=subprocess.DEVNULL).returncode == 0
        first, second = os.read(reader, 4096).decode().split()
    finally:
        os.close(reader)
        os.close(writer)
    assert second == "/dev/null"
    assert first.startswith("pipe:")
    assert (first == own) == bool(options)


@FURTHER
def test_the_job_has_no_further_descriptor(tmp_path: Path) -> None:
    words = ["sh", "-c", "ls /proc/self/fd | wc -l"]
    bare, watched = _run(words), _run([*_watch(tmp_path), *words])
    assert watched.stdout == bare.stdout


def test_a_reader_that_goes_away_ends_the_job_as_without(tmp_path: Path) -> None:
    with subprocess.Popen([*_watch(tmp_path), "yes"], stdout=subprocess.PIPE, env=_environ()) as job:
        assert job.stdout is not None
        assert job.stdout.read(2) == b"y\n"
        job.stdout.close()
        assert job.wait(_LIMIT_S) == -signal.SIGPIPE


_SLOWLY = "i=0; while test $i -lt 40; do echo $i; i=$((i + 1)); sleep 0.05; done; test -e go || sleep 1"
_ALL = b"".join(b"%d\n" % number for number in range(40))


def test_the_job_writes_on_when_the_watcher_is_killed(tmp_path: Path) -> None:
    with subprocess.Popen(
        [*_watch(tmp_path), "sh", "-c", _SLOWLY], stdout=subprocess.PIPE, env=_environ()
    ) as watch:
        assert watch.stdout is not None
        first = os.read(watch.stdout.fileno(), 2)
        watch.kill()
        watch.wait(_LIMIT_S)
        assert first + watch.stdout.read() == _ALL
    assert _kept(tmp_path, "stdout.log") == _ALL


def test_another_relay_goes_on_where_the_first_is_killed(tmp_path: Path) -> None:
    with subprocess.Popen(
        [*_watch(tmp_path), "sh", "-c", _SLOWLY], stdout=subprocess.PIPE, env=_environ()
    ) as watch:
        assert watch.stdout is not None
        first = os.read(watch.stdout.fileno(), 2)
        relay = _relay_of(watch.pid)
        os.kill(relay, signal.SIGKILL)
        _until(lambda: _relay_of(watch.pid) not in (0, relay))
        rest = watch.stdout.read()
        assert watch.wait(_LIMIT_S) == 0
    lines = (first + rest).splitlines()
    assert lines == sorted(lines, key=int)
    assert len(lines) >= 39  # what the killed one had read, and not yet written, is lost
    assert lines[-1] == b"39"


def _relay_of(pid: int) -> int:
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split() + _of_threads(pid):
        with suppress(OSError):
            if b"relay_child" in Path(f"/proc/{child}/cmdline").read_bytes():
                return int(child)
    return 0


def _of_threads(pid: int) -> list[str]:
    return [
        word for file in Path(f"/proc/{pid}/task").glob("*/children") for word in file.read_text().split()
    ]


@FURTHER
def test_signals_to_the_whole_group_end_the_job_and_its_last_words_arrive(tmp_path: Path) -> None:
    script = "trap 'echo last; exit 5' TERM; echo on; while :; do sleep 0.05; done"
    with subprocess.Popen(
        [*_watch(tmp_path), "sh", "-c", script],
        stdout=subprocess.PIPE,
        env=_environ(),
        start_new_session=True,
    ) as watch:
        assert watch.stdout is not None
        assert watch.stdout.readline() == b"on\n"
        os.killpg(watch.pid, signal.SIGTERM)
        assert watch.stdout.read().endswith(b"last\n")
        assert watch.wait(_LIMIT_S) == 5


@FURTHER
def test_what_the_job_leaves_behind_may_write_after_its_end(tmp_path: Path) -> None:
    script = "(while ! test -e go; do sleep 0.05; done; echo late) & echo on"
    with subprocess.Popen(
        [*_watch(tmp_path), "sh", "-c", script], stdout=subprocess.PIPE, env=_environ(), cwd=tmp_path
    ) as watch:
        assert watch.stdout is not None
        assert watch.wait(_LIMIT_S) == 0
        (tmp_path / "go").touch()
        assert watch.stdout.read() == b"on\nlate\n"


@FURTHER
def test_what_is_kept_is_bounded_and_the_last_of_it_stays(tmp_path: Path) -> None:
    most = 5 * MOST_BYTES
    script = f"head -c {most} /dev/zero | tr '\\0' x; echo end"
    done = _run([*_watch(tmp_path), "sh", "-c", script])
    assert len(done.stdout) == most + 4
    files = list((tmp_path / "kept").glob("*/stdout*.log"))
    assert {file.name for file in files} == {"stdout.log", "stdout.1.log"}
    assert all(file.stat().st_size <= MOST_BYTES for file in files)


_TERMINAL = (
    "import os, sys, time; print([os.isatty(number) for number in range(3)], os.tcgetpgrp(0) == os.getpgrp(), "
    "os.ttyname(0), os.get_terminal_size(1), sorted(os.listdir('/proc/self/fd'))); print('two\\nlines', flush=True); "
    "[time.sleep(0.02) for _ in range(3000) if os.get_terminal_size(2).columns == 177]; print(os.get_terminal_size(2))"
)


def _on_a_terminal(words: list[str]) -> str:
    """Return what the terminal gets, whose size changes meanwhile."""
    leader, follower = os.openpty()
    try:
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("4H", 33, 177, 0, 0))
        name = os.ttyname(follower)
        with subprocess.Popen(
            [*words, sys.executable, "-c", _TERMINAL],
            stdin=follower, stdout=follower, stderr=follower, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0), env=_environ(),
        ) as started:  # fmt: skip
            os.close(follower)
            text = b""
            with suppress(OSError):  # EIO: nobody has the terminal any more
                while chunk := os.read(leader, 65536):
                    text += chunk
                    if b"lines" in text:
                        fcntl.ioctl(leader, termios.TIOCSWINSZ, struct.pack("4H", 44, 99, 0, 0))
            assert started.wait(_LIMIT_S) == 0, text
        return text.decode().replace(name, "TERMINAL")
    finally:
        os.close(leader)


def test_a_terminal_stays_one_with_its_size_and_line_ends(tmp_path: Path) -> None:
    bare = _on_a_terminal([])
    assert bare.startswith("[True, True, True] True")
    assert "two\r\nlines\r\n" in bare
    assert bare.endswith("columns=99, lines=44)\r\n")
    assert _on_a_terminal(_watch(tmp_path)) == bare
    assert b"two\nlines\n" in _kept(tmp_path, "output.log")


@FURTHER
def test_input_and_ctrl_c_at_the_terminal_reach_the_job(tmp_path: Path) -> None:
    script = "trap 'echo interrupted; exit 9' INT; read a; echo got $a; while :; do sleep 0.05; done"
    leader, follower = os.openpty()
    try:
        with subprocess.Popen(
            [*_watch(tmp_path), "sh", "-c", script],
            stdin=follower, stdout=follower, stderr=follower, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0), env=_environ(),
        ) as started:  # fmt: skip
            os.close(follower)
            os.write(leader, b"hello\n")
            text = b""
            while b"got hello\r\n" not in text:
                text += os.read(leader, 65536)
            os.write(leader, b"\x03")
            with suppress(OSError):
                while chunk := os.read(leader, 65536):
                    text += chunk
            assert started.wait(_LIMIT_S) == 9
        assert text.endswith(b"interrupted\r\n")
    finally:
        os.close(leader)


@pytest.mark.parametrize(
    "closed", ["<&-", pytest.param("2>&-", marks=FURTHER), pytest.param("<&- 2>&-", marks=FURTHER)]
)
def test_a_stream_that_is_closed_stays_closed(tmp_path: Path, closed: str) -> None:
    job = f"{sys.executable} -c 'import os; print(sorted(os.listdir(\"/proc/self/fd\")))' {closed}"
    done = _run(["sh", "-c", f"{' '.join(_watch(tmp_path))} {job}"])
    bare = _run(["sh", "-c", job])
    assert done.returncode == 0
    assert done.stdout == bare.stdout
    assert _kept(tmp_path, "stdout.log") == done.stdout


@FURTHER
def test_a_socket_stays_one(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            done = _run([*_watch(tmp_path), "readlink", "/proc/self/fd/1"], stdout=theirs.fileno())
        assert done.returncode == 0
        assert ours.recv(4096).startswith(b"socket:")


def test_the_files_to_which_a_launcher_sends_the_ranks_output_are_kept_too(tmp_path: Path) -> None:
    script = "echo of rank 3; until test -e go; do sleep 0.05; done; exit 4"
    rank = f"env RANK=3 LOCAL_RANK=0 sh -c '{script}' > rank.log"
    words = [*_watch(tmp_path, "--patience", "6"), "sh", "-c", f"echo of the launcher; {rank}; exit 4"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, env=_environ(), cwd=tmp_path) as watch:
        assert watch.stdout is not None
        _until(lambda: any('"ranks":[3]' in file.read_text() for file in tmp_path.glob("kept/*/status.json")))
        (tmp_path / "go").touch()
        assert watch.stdout.read() == b"of the launcher\n"
        assert watch.wait(_LIMIT_S) == 4
    assert _kept(tmp_path, "rank-3.stdout.log") == b"of rank 3\n"
