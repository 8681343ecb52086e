"""The command line that starts ncclcheck on a host over ssh, and what it means when that fails.

The user's own ssh client is run, with the user's own configuration: keys, known hosts, jump hosts. It is never told to
let a host through whose key is not known.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ncclcheck import timeouts
from ncclcheck.model.snapshot import UnreachedCause

# ssh(1): "exits with the exit status of the remote command or with 255 if an error occurred".
SSH_FAILED = 255
NOT_EXECUTABLE, NOT_FOUND = 126, 127  # POSIX sh, "Exit Status for Commands"
_ALIVE_TIMES = 3
_MOST_TEXT = 400

# What OpenSSH's client says, in the order in which it may fail (ssh.c, sshconnect.c, sshconnect2.c, packet.c).
_SSH_WORDS: tuple[tuple[str, UnreachedCause], ...] = (
    (r"could not resolve hostname|name or service not known|nodename nor servname", "name-unknown"),
    (r"host key verification failed|remote host identification has changed|host key .*(changed|revoked)"
     r"|no .*host key is known|host key for .* has changed", "host-key"),
    (r"connection refused", "refused"),
    (r"no route to host|network is unreachable|host is down", "no-route"),
    (r"timed out|timeout", "timed-out"),
    (r"permission denied|too many authentication failures|no supported authentication|account .*expired"
     r"|password .*expired", "denied"),
)  # fmt: skip
_PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./-]+")
# A line of these says less than what stands before it.
_NOISE = re.compile(
    r"^(@+|\s*|killed by signal \d+\.?|connection to \S+ closed( by remote host)?\.|pty allocation request failed.*)$",
    re.IGNORECASE,
)


def ssh_command(
    ssh: Sequence[str],
    target: str,
    python: str,
    environment: Mapping[str, str],
    connect_s: float,
) -> list[str]:
    """Return the command line that runs `python -m ncclcheck remote` on the target, with these variables set.

    No question, no forwarding; a connection that dies is noticed within seconds. A terminal, for nothing but its end:
    sshd then hangs up on whatever the login shell has started, also where that shell hangs. Without one, as where
    sshd allows none, only a program that reads its standard input notices. What the user's shell
    there is does not matter: what any of them would read otherwise is spelt in octal digits.
    """
    options = {
        "BatchMode": "yes",
        "ConnectTimeout": str(max(1, round(connect_s))),
        "ServerAliveInterval": str(timeouts.SSH_ALIVE_S),
        "ServerAliveCountMax": str(_ALIVE_TIMES),
        "LogLevel": "ERROR",  # errors alone: a banner is none, and QUIET would hide the reason
        "ForwardAgent": "no",
        "ForwardX11": "no",
        "ClearAllForwardings": "yes",
        "EscapeChar": "none",
        "RequestTTY": "force",
        "PermitLocalCommand": "no",
    }
    words = [*(f"{name}={value}" for name, value in sorted(environment.items())), python]
    command = " ".join(["exec", "env", *map(_word, words), "-m", "ncclcheck", "remote"])
    option_words = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    return [*ssh, *option_words, target, f"exec /bin/sh -c '{command}'"]


def _word(text: str) -> str:
    """Quote a word for /bin/sh, also safe in login shells that treat single quotes differently.

    fish takes a backslash there, csh an exclamation mark and the end of a line. A value loses newlines at its end.
    """
    if _PLAIN.fullmatch(text):
        return text
    digits = "".join(
        chr(byte) if _PLAIN.fullmatch(chr(byte)) else f"\\0{byte:03o}"  # as printf(1) has it for %b
        for byte in text.encode("utf-8", "surrogateescape")
    )
    return f'"$(printf %b "{digits}")"'


def local_command(python: str, environment: Mapping[str, str], open_files: int) -> list[str]:
    """Return the same for this machine, without ssh, and with `open_files` as its soft limit (-1: none)."""
    limit = "unlimited" if open_files < 0 else str(open_files)
    return [
        "/bin/sh",
        "-c",
        'ulimit -S -n "$0"; exec env "$@"',
        limit,
        *(f"{name}={value}" for name, value in sorted(environment.items())),
        python,
        "-m",
        "ncclcheck",
        "remote",
    ]


def why_ended(returncode: int, stderr: str, noise: str, python: str) -> tuple[UnreachedCause, str]:
    """Return why a command line of `ssh_command` ended before ncclcheck ran there, and the text that says so."""
    error_text = reason(stderr)
    lower = stderr.lower()
    if returncode == SSH_FAILED:
        known = next((cause for words, cause in _SSH_WORDS if re.search(words, lower)), None)
        return known or "closed", error_text or "ssh ended with 255 and said nothing"
    if "no module named" in lower and "ncclcheck" in lower.partition("no module named")[2]:
        return "no-ncclcheck", error_text
    if "no such command" in lower and "remote" in lower:
        return "other-version", error_text
    if returncode in (NOT_FOUND, NOT_EXECUTABLE):
        return "no-python", error_text or f"{python} cannot be run (exit {returncode})"
    how = f"signal {-returncode}" if returncode < 0 else f"exit {returncode}"
    return "ended", f"{error_text or reason(noise) or 'it said nothing'} ({how})"


def reason(text: str) -> str:
    """Return the lines that say why, of many the last ones, without control characters."""
    lines = ["".join(letter for letter in line if letter.isprintable()).strip() for line in text.splitlines()]
    telling = [line for line in lines if line and not _NOISE.match(line)]
    last_lines: list[str] = []
    for line in reversed(telling[-4:]):
        if sum(map(len, last_lines)) + len(line) > _MOST_TEXT:
            break
        last_lines.insert(0, line)
    return "; ".join(last_lines) or (telling[-1][:_MOST_TEXT] if telling else "")
