"""Runs inside a network namespace: asks one real NCCL library for its choice under many environments.

Each question is answered by a fork, since NCCL reads its environment once and then keeps a listener open.
"""

from __future__ import annotations

import ctypes
import os
import pwd
import shutil
import subprocess
import sys
from pathlib import Path

from msgspec import Struct

from ncclcheck.facts.nccl.nccl_config import read_config_files
from ncclcheck.facts.nccl.nccl_words import bootstrap_line, version_text
from ncclcheck.facts.network.interfaces import read_interfaces
from ncclcheck.model.codec import decode, encode
from ncclcheck.model.facts import Interface, NcclConfigFile

NAMED, HOME, PASSWD_HOME, ETC = "named.conf", "home/.nccl.conf", "passwd/.nccl.conf", "etc/nccl.conf"


class Question(Struct, frozen=True):
    """An environment, and the texts of the config files that exist while it is asked."""

    environment: dict[str, str]
    files: dict[str, str] = {}


class Answer(Struct, frozen=True):
    """What the library did, and the config files as the facts have them."""

    result_code: int
    interface: str | None
    address: str | None
    log: str
    config_files: tuple[NcclConfigFile, ...]


class Answers(Struct, frozen=True):
    """The library's version and answers, and the interfaces before and after: equal, or nothing is proven."""

    version: str
    before: tuple[Interface, ...]
    after: tuple[Interface, ...]
    answers: tuple[Answer, ...]


def main() -> None:
    """Read questions from stdin, write Answers to stdout; argv: the library and an empty folder to work in."""
    library, folder = ctypes.CDLL(sys.argv[1]), Path(sys.argv[2])
    questions = decode(sys.stdin.read(), tuple[Question, ...])
    _bind_folders(folder)
    version = ctypes.c_int()
    library.ncclGetVersion(ctypes.byref(version))
    before = read_interfaces()
    answers = tuple(_answer(library, folder, question) for question in questions)
    result = Answers(version_text(version.value), before, read_interfaces(), answers)
    sys.stdout.buffer.write(encode(result))


def _bind_folders(folder: Path) -> None:
    """/etc is a copy of our own in this mount namespace, which `ip netns exec` has made; its passwd names our home."""
    (folder / "home").mkdir(exist_ok=True)
    (folder / "passwd").mkdir(exist_ok=True)
    if not (folder / "etc").exists():
        # /etc/netns is of other namespaces, which come and go meanwhile.
        ignored = shutil.ignore_patterns("netns")
        shutil.copytree("/etc", folder / "etc", symlinks=True, ignore=ignored, ignore_dangling_symlinks=True)
    me = pwd.getpwuid(os.getuid())
    entry = f"{me.pw_name}:x:{me.pw_uid}:{me.pw_gid}::{folder / 'passwd'}:/bin/sh\n"
    (folder / "etc/passwd").write_text(entry)
    subprocess.run(["mount", "--bind", folder / "etc", "/etc"], check=True, timeout=10)


def _answer(library: ctypes.CDLL, folder: Path, question: Question) -> Answer:
    for name in (NAMED, HOME, PASSWD_HOME, ETC):
        (folder / name).unlink(missing_ok=True)
        if name in question.files:
            (folder / name).write_bytes(question.files[name].encode())
    environment = {name: value.replace("FOLDER", str(folder)) for name, value in question.environment.items()}
    log_path = folder / "log"
    child = os.fork()
    if child == 0:
        _ask_and_exit(library, environment, log_path)
    _, status = os.waitpid(child, 0)
    log = log_path.read_text(errors="replace")
    line = bootstrap_line(log)
    return Answer(
        os.waitstatus_to_exitcode(status),
        line.interface if line else None,
        line.address if line else None,
        log[-2000:],
        read_config_files(environment),
    )


def _ask_and_exit(library: ctypes.CDLL, environment: dict[str, str], log_path: Path) -> None:
    os.environ.clear()
    os.environ.update(environment, NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="INIT,BOOTSTRAP,ENV")
    log = os.open(log_path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    result = library.ncclGetUniqueId(ctypes.create_string_buffer(128))
    ctypes.CDLL(None).fflush(None)
    os._exit(result)


if __name__ == "__main__":
    main()
