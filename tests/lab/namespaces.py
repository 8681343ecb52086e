"""Network namespaces through `ip`: made, entered, searched for processes, and deleted again."""

from __future__ import annotations

import functools
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

PREFIX = "ncclab"
ETC = Path("/etc/netns")  # `ip netns exec NAME` binds ETC/NAME/* over /etc/* (ip-netns(8))
SHM = Path("/dev/shm")  # SHM/NAME is bound over /dev/shm of the node
FOLDERS = Path(tempfile.gettempdir())  # FOLDERS/PREFIX... holds the files of a lab
_NEEDED = ("ip", "unshare", "mount", "hostname", "sysctl", "ss", "iptables", "tc")


class LabError(Exception):
    """A command that builds the lab failed; the text has the command and what it said."""


def call(argv: Sequence[str], *, stdin: str = "") -> str:
    """The standard output of a short command. Raises LabError when it fails or takes more than 30 s."""
    try:
        done = subprocess.run(argv, input=stdin, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LabError(f"{' '.join(argv)}: {error}") from error
    if done.returncode:
        raise LabError(f"{' '.join(argv)}: exit {done.returncode}: {done.stderr.strip()}\n{stdin}")
    return done.stdout


def ip(lines: Iterable[str], *, namespace: str | None = None) -> None:
    """Run `lines` as one `ip -batch`, inside `namespace` if one is given."""
    inside = ["-netns", namespace] if namespace else []
    call(["ip", *inside, "-batch", "-"], stdin="".join(f"{line}\n" for line in lines))


def inside(namespace: str, argv: Sequence[str]) -> list[str]:
    """The command line that runs `argv` in `namespace`."""
    return ["ip", "netns", "exec", namespace, *argv]


def pids(namespace: str) -> tuple[int, ...]:
    """The processes alive in `namespace`; zombies have left it."""
    return tuple(int(word) for word in call(["ip", "netns", "pids", namespace]).split())


def delete(names: Sequence[str]) -> None:
    """End every process of the namespaces, delete them and their folders. Raises LabError if a process stays."""
    there = [name for name in names if name in existing()]
    stubborn = [pid for name in there for pid in _end_processes(name)]
    if there:
        ip(f"netns del {name}" for name in there)
    for name in names:
        shutil.rmtree(ETC / name, ignore_errors=True)
        shutil.rmtree(SHM / name, ignore_errors=True)
    if stubborn:
        raise LabError(f"processes that did not end in 10 s after SIGKILL: {stubborn}")


def _end_processes(namespace: str) -> tuple[int, ...]:
    deadline = time.monotonic() + 10
    while alive := pids(namespace):
        for pid in alive:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            return alive
        time.sleep(0.01)
    return ()


def existing() -> tuple[str, ...]:
    """Names of all the network namespaces of this machine that have one."""
    folder = Path("/run/netns")
    return tuple(sorted(path.name for path in folder.iterdir())) if folder.is_dir() else ()


def new_prefix() -> str:
    """A prefix for the namespaces of one lab that tells its owner: this process."""
    return f"{PREFIX}-{os.getpid()}-{os.urandom(3).hex()}-"


def delete_abandoned() -> tuple[str, ...]:
    """Delete the namespaces of labs whose owner was killed before it could; their names."""
    gone = [name for name in existing() if _abandoned(name)]
    with suppress(
        LabError
    ):  # another lab is deleting the same ones, or they will not go: no reason not to start
        delete(gone)
    for folder in FOLDERS.glob(f"{PREFIX}-*"):
        if _abandoned(folder.name):
            shutil.rmtree(folder, ignore_errors=True)
    return tuple(gone)


def _abandoned(name: str) -> bool:
    match = re.match(rf"{PREFIX}-(\d+)-[0-9a-f]+-", name)
    return match is not None and not Path("/proc", match.group(1)).exists()


@functools.cache
def lab_skip_reason() -> str | None:
    """Why nodes cannot be built on this machine, in a sentence; None where they can. Found by building one pair."""
    if sys.platform != "linux":
        return "the lab needs Linux network namespaces"
    if os.geteuid() != 0:
        return "the lab needs root, for network namespaces (ip netns)"
    missing = [name for name in _NEEDED if not shutil.which(name)]
    if missing:
        return f"the lab needs {', '.join(missing)} (Debian packages iproute2 iptables)"
    name = new_prefix() + "trial"
    try:
        ip([f"netns add {name}"])
        lines = [
            "link add br0 type bridge",
            "link add port type veth peer name eth0",
            "link set port master br0",
        ]
        ip(lines, namespace=name)
        call(inside(name, ["unshare", "--uts", "hostname", "trial"]))
        call(inside(name, ["iptables", "-w", "-A", "INPUT", "-p", "tcp", "--dport", "9", "-j", "DROP"]))
    except LabError as error:
        return f"network namespaces cannot be used here: {' '.join(str(error).split())}"
    finally:
        delete([name])
    return None
