"""The command line over ssh, and what the words of ssh and of shells mean."""

from __future__ import annotations

import shlex
import shutil
import subprocess

import pytest

from ncclcheck.model.snapshot import UnreachedCause
from ncclcheck.spawn.ssh import local_command, reason, ssh_command, why_ended

PYTHON = "/opt/venv/bin/python"


def command(**environment: str) -> list[str]:
    return ssh_command(["ssh", "-F", "file"], "root@node01", PYTHON, environment, 10.0)


def test_it_asks_nobody_and_lets_no_unknown_host_through() -> None:
    words = command()
    assert words[:3] == ["ssh", "-F", "file"]
    assert "BatchMode=yes" in words
    assert "ConnectTimeout=10" in words
    assert words[-2] == "root@node01"
    assert not any("StrictHostKeyChecking" in word or "KnownHosts" in word for word in words)


VALUES = ["eth0", "^docker0", "a b", "$HOME `id` $(id)", "it's", '"', "a;b|c&d", "\\", "two\\\\", "\\'", "!x !!",
          "é", "*", "a\nb", "~", "{a,b}", "%s", "#"]  # fmt: skip


@pytest.mark.parametrize("shell", ["sh", "bash", "dash", "zsh", "fish", "csh"])
def test_values_arrive_as_they_are_whatever_is_in_them(shell: str) -> None:
    """sshd gives the words after the host, joined by spaces, to the user's shell with -c (sshd(8))."""
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    variables = {f"NCCL_{number}": value for number, value in enumerate(VALUES)}
    remote = command(**variables)[-1]
    shown = remote.replace(f"{PYTHON} -m ncclcheck remote", "env -0")
    assert shown != remote
    done = subprocess.run([program, "-c", shown], capture_output=True, text=True, check=True)
    arrived = dict(line.partition("=")[::2] for line in done.stdout.split("\0"))
    assert {name: arrived.get(name) for name in variables} == variables


def test_the_same_here_with_the_limit_that_this_process_had() -> None:
    words = local_command(PYTHON, {"A": "1 2"}, 77)
    assert words[4:] == ["A=1 2", PYTHON, "-m", "ncclcheck", "remote"]
    assert shlex.split(shlex.split(command(A="12")[-1])[-1])[2:] == local_command(PYTHON, {"A": "12"}, 77)[4:]
    say = [*words[:5], "sh", "-c", 'echo "$A" $(ulimit -S -n)']
    assert subprocess.run(say, capture_output=True, text=True, check=True).stdout == "1 2 77\n"


@pytest.mark.parametrize(
    ("stderr", "cause"),
    [
        ("ssh: Could not resolve hostname node9: Name or service not known", "name-unknown"),
        ("ssh: connect to host node3 port 22: Connection refused", "refused"),
        ("ssh: connect to host node3 port 22: Connection timed out", "timed-out"),
        ("ssh: connect to host node3 port 22: No route to host", "no-route"),
        ("ssh: connect to host node3 port 22: Network is unreachable", "no-route"),
        ("Connection timed out during banner exchange", "timed-out"),
        ("root@node3: Permission denied (publickey).", "denied"),
        ("Received disconnect from 10.0.0.3 port 22:2: Too many authentication failures", "denied"),
        ("Host key verification failed.", "host-key"),
        (
            "@@@@@@@@@@@@@@@@@@@@@@@\n@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\n"
            "Host key for node3 has changed and you have requested strict checking.\nHost key verification failed.",
            "host-key",
        ),
        ("kex_exchange_identification: Connection closed by remote host", "closed"),
        ("", "closed"),
    ],
)
def test_the_words_of_ssh(stderr: str, cause: UnreachedCause) -> None:
    found, text = why_ended(255, stderr, "", PYTHON)
    assert found == cause
    assert text


@pytest.mark.parametrize(
    ("code", "stderr", "cause"),
    [
        (127, "sh: 1: exec: /opt/venv/bin/python: not found", "no-python"),
        (127, "env: '/opt/venv/bin/python': No such file or directory", "no-python"),
        (126, "env: '/opt/venv/bin/python': Permission denied", "no-python"),
        (1, "/usr/bin/python3: No module named ncclcheck", "no-ncclcheck"),
        (2, "ncclcheck: error: No such command 'remote'.", "other-version"),
        (1, "Traceback (most recent call last):\nImportError: libfoo.so.1", "ended"),
        (-9, "", "ended"),
        (1, "", "ended"),
    ],
)
def test_the_words_of_shells_and_pythons(code: int, stderr: str, cause: UnreachedCause) -> None:
    found, text = why_ended(code, stderr, "", PYTHON)
    assert found == cause
    assert text


def test_what_a_shell_said_for_people_is_told_where_nothing_else_was() -> None:
    assert (
        "This account is currently not available"
        in why_ended(1, "", "This account is currently not available.\n", PYTHON)[1]
    )


def test_a_reason_is_short_and_harmless() -> None:
    assert reason("\x1b[31mfirst\x07\n\n@@@@@\nsecond\n") == "[31mfirst; second"
    assert len(reason("x" * 5000)) <= 400
    assert reason("") == ""
