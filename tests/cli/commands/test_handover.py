"""The prefix hands COMMAND exactly what ncclcheck got: signals, masks, descriptors, limits, terminal, priorities."""

from __future__ import annotations

import fcntl
import os
import re
import resource
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

_SHOW = (
    "grep -E '^(Umask|Sig[PBI]|Shd|Cap|NoNewPrivs|Cpus_allowed|Groups)' /proc/self/status; cat /proc/self/limits; pwd; "
    "cat /proc/self/oom_score_adj /proc/self/timerslack_ns; env | grep -v '^_='; nice; "
    "for f in /proc/self/fd/*; do readlink $f; done | grep -v /proc | sed 's/pipe:.*/pipe/' | sort -u"
)


def _ignoring(*numbers: signal.Signals) -> Callable[[], None]:
    def ignore() -> None:
        for number in numbers:
            signal.signal(number, signal.SIG_IGN)

    return ignore


def _blocking(*numbers: signal.Signals) -> Callable[[], None]:
    return lambda: (signal.pthread_sigmask(signal.SIG_BLOCK, numbers), None)[1]


_SETUPS: dict[str, Callable[[], object]] = {
    "nothing": lambda: None,
    "ignores-term": _ignoring(signal.SIGTERM),
    "ignores-int-and-quit": _ignoring(signal.SIGINT, signal.SIGQUIT),
    "ignores-hup": _ignoring(signal.SIGHUP),
    "ignores-chld": _ignoring(signal.SIGCHLD),
    "ignores-terminal-stops": _ignoring(signal.SIGTTOU, signal.SIGTTIN, signal.SIGTSTP),
    "ignores-usr1-alrm": _ignoring(signal.SIGUSR1, signal.SIGALRM),
    "blocks-chld-and-usr1": _blocking(signal.SIGCHLD, signal.SIGUSR1),
    "blocks-int-and-term": _blocking(signal.SIGINT, signal.SIGTERM),
    "few-files": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (100, 5000)),
    "no-core": lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)),
    "umask": lambda: os.umask(0o077),
    "descriptor-9": lambda: os.dup2(os.open("/etc/hosts", os.O_RDONLY), 9, inheritable=True),
    "no-stdin": lambda: os.close(0),
    "nice": lambda: os.nice(3),
    "one-core": lambda: os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}),
}
_ALWAYS = ("nothing", "ignores-term", "blocks-chld-and-usr1")


def _shown(words: list[str], setup: Callable[[], object], folder: Path) -> str:
    """Return what COMMAND, a shell, sees of itself behind `words`."""
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(Path.cwd()), "LANG": "C.UTF-8"}
    file = folder / "shown"
    with file.open("w") as stdout:
        done = subprocess.run(
            [*words, "/bin/sh", "-c", _SHOW],
            preexec_fn=setup,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
            cwd=folder,
            env=env,
            timeout=120,
            check=False,
            close_fds=False,
        )
    assert done.returncode == 0, done.stderr
    text = file.read_text()
    return text[text.index("Umask:") :].replace(str(folder), "")


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in _ALWAYS else pytest.mark.further) for name in _SETUPS]
)
def test_command_gets_what_ncclcheck_got(name: str, tmp_path: Path) -> None:
    prefix = [sys.executable, "-m", "ncclcheck", "preflight", "-q", "--"]
    assert _shown(prefix, _SETUPS[name], tmp_path) == _shown([], _SETUPS[name], tmp_path)


@pytest.mark.slow
@pytest.mark.further
def test_command_gets_the_limit_of_open_files_that_a_head_node_raised(tmp_path: Path) -> None:
    def setup() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (100, 5000))

    prefix = [
        sys.executable,
        "-m",
        "ncclcheck",
        "preflight",
        "-q",
        "--hosts",
        "localhost",
        "--ssh",
        "ssh -p 1",
    ]
    # ssh fails here: this very machine is checked without it.
    found = _shown([*prefix, "--fail-on", "never", "--"], setup, tmp_path)
    assert re.search(r"Max open files +100 +5000", found), found


@pytest.mark.slow
@pytest.mark.parametrize("ignores", [True, False])
def test_command_gets_sigpipe_as_the_shell_has_it(ignores: bool, tmp_path: Path) -> None:
    trap = "trap '' PIPE; " if ignores else ""
    bare = f"{trap}cat /proc/self/status; true"
    prefixed = f"{trap}{sys.executable} -m ncclcheck preflight -q -- cat /proc/self/status; true"
    masks = []
    for script in (bare, prefixed):
        done = subprocess.run(
            ["/bin/sh", "-c", script], capture_output=True, text=True, cwd=tmp_path, timeout=120, check=True,
            env={**os.environ, "PYTHONPATH": str(Path.cwd())},
        )  # fmt: skip
        masks.append(re.findall(r"^SigIgn:\s*(\w+)", done.stdout, re.MULTILINE))
    assert masks[0] == masks[1]
    assert bool(int(masks[0][0], 16) >> (signal.SIGPIPE - 1) & 1) == ignores


_TERMINAL = (
    "import os, sys, termios; "
    "print([os.isatty(number) for number in range(3)], os.tcgetpgrp(0) == os.getpgrp(), os.getsid(0) == os.getpid(), "
    "termios.tcgetattr(0), os.get_terminal_size(1), sorted(os.listdir('/proc/self/fd')))"
)


def _on_a_terminal(words: list[str], folder: Path) -> str:
    """Return the last line that the command prints on a terminal of its own, whose foreground it has."""
    leader, follower = os.openpty()
    try:
        attributes = termios.tcgetattr(follower)
        attributes[3] &= ~termios.ECHO
        attributes[6][termios.VINTR] = b"\x18"
        termios.tcsetattr(follower, termios.TCSANOW, attributes)
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("4H", 33, 177, 0, 0))
        started = subprocess.Popen(
            [*words, sys.executable, "-c", _TERMINAL],
            stdin=follower, stdout=follower, stderr=follower, cwd=folder, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0), env={**os.environ, "PYTHONPATH": str(Path.cwd())},
        )  # fmt: skip
        os.close(follower)
        text = b""
        with suppress(OSError):  # EIO: nobody has the terminal any more
            while chunk := os.read(leader, 65536):
                text += chunk
        assert started.wait(60) == 0, text
        return text.decode().strip().splitlines()[-1]
    finally:
        os.close(leader)


@pytest.mark.slow
def test_command_gets_the_terminal_as_it_was(tmp_path: Path) -> None:
    bare = _on_a_terminal([], tmp_path)
    assert bare.startswith("[True, True, True] True")
    assert "columns=177, lines=33" in bare
    prefix = [sys.executable, "-m", "ncclcheck", "preflight", "-q", "--"]
    assert _on_a_terminal(prefix, tmp_path) == bare
