"""Identifies the code that would run: git commit, a hash over each tree, and the installed packages."""

from __future__ import annotations

import hashlib
import json
import signal
import subprocess
import sys
import time
import zlib
from base64 import b64decode
from collections.abc import Collection, Sequence
from typing import Any

from ncclcheck import timeouts
from ncclcheck.facts.bounded_call import missing_for, start
from ncclcheck.facts.child import end_child, python_command, read_child, start_child
from ncclcheck.facts.section import Section
from ncclcheck.facts.software.git import read_git
from ncclcheck.facts.software.packages import installed
from ncclcheck.facts.text_files import readable
from ncclcheck.model.fact import Fact, Missing, Why
from ncclcheck.model.facts import Code, CodePath

# What a child needs to start, and to end after its own deadline, before ours.
_MODULE = "ncclcheck.facts.software.code_child"
_DEAD = f"did not answer within {timeouts.CODE_SEEN_S:g} s"


def read_code(paths: Sequence[str], deadline_s: float = timeouts.CODE_S) -> Code:
    """Return the identity of each path, all read at once, and of the packages this Python sees."""
    end = time.monotonic() + deadline_s
    started = [(path, start(_tree, path, deadline_s), start(read_git, path, deadline_s)) for path in paths]
    packages = start(read_packages).result(deadline_s)
    found = []
    for path, tree, git in started:
        hashed = tree.result(end - time.monotonic())
        # Where the path itself does not answer, git would hang there too.
        is_dead = isinstance(hashed, Missing) and hashed.detail.endswith(_DEAD)
        asked = hashed if is_dead and isinstance(hashed, Missing) else git.result(end - time.monotonic())
        sha256, files = (hashed, hashed) if isinstance(hashed, Missing) else hashed
        commit, dirty = (asked, asked) if isinstance(asked, Missing) else asked
        found.append(CodePath(readable(path), sha256, files, commit, dirty))
    listed = packages if isinstance(packages, Missing) else packages_hash(packages)
    return Code(paths=tuple(found), packages_sha256=listed, packages=packages)


def read_packages() -> dict[str, str]:
    """Return the version by normalised name of every package on this Python's path."""
    return {name: package.version for name, package in sorted(installed(sys.path).items())}


def packages_hash(packages: dict[str, str]) -> str:
    """Return SHA-256 over the lines `name==version` in order of the names."""
    lines = "".join(f"{name}=={packages[name]}\n" for name in sorted(packages))
    return hashlib.sha256(lines.encode()).hexdigest()


def _tree(path: str, deadline_s: float) -> Fact[tuple[str, int]]:
    words = _ask_child(path, deadline_s)
    return words if isinstance(words, Missing) else (words["sha256"], words["files"])


def list_files(path: str, deadline_s: float = timeouts.CODE_S) -> Fact[dict[str, str]]:
    """Return a short digest of each file below the path, by its name."""
    words = _ask_child(path, deadline_s, "list")
    if isinstance(words, Missing):
        return words
    return dict(json.loads(zlib.decompress(b64decode(words["listing"]))))


def list_own(own_paths: Sequence[str], asked_paths: Collection[str]) -> dict[str, dict[str, str]]:
    """Return the listings of those of the wanted paths that this node's own command line names, all read at once."""
    listings = {
        readable(path): start(list_files, path) for path in own_paths if readable(path) in asked_paths
    }
    found = {path: listing.result(timeouts.CODE_S) for path, listing in listings.items()}
    return {path: listing for path, listing in found.items() if not isinstance(listing, Missing)}


def _ask_child(path: str, deadline_s: float, *more: str) -> Fact[dict[str, Any]]:
    own_deadline_s = max(deadline_s - timeouts.CODE_INNER_S, deadline_s / 2)
    try:
        process = start_child(python_command(_MODULE, [path, str(own_deadline_s), *more]), None)
    except (OSError, ValueError) as error:
        return missing_for(error, readable(path))
    try:
        output, complaint = _heard(process, deadline_s)
    finally:
        end_child(process)
    if not output and process.returncode in (None, -signal.SIGKILL):
        return Missing("timeout", f"{readable(path)}: {_DEAD}")
    try:
        words = json.loads(output)
    except ValueError:
        if process.returncode in (None, -signal.SIGKILL):
            return Missing("timeout", f"{readable(path)}: not read within {deadline_s:g} s")
        text = complaint.decode("utf-8", "replace").strip()[-500:]
        return Missing(
            "error", f"{readable(path)}: the hashing child ended with {process.returncode}: {text}"
        )
    if "missing" in words:
        why: Why = words["missing"]
        return Missing(why, readable(words["detail"]))
    document: dict[str, Any] = words
    return document


def _heard(process: subprocess.Popen[bytes], deadline_s: float) -> tuple[bytes, bytes]:
    """Return what the child wrote to stdout and stderr; one that has not seen the path in time is given up."""
    began = time.monotonic()
    texts = [b"", b""]
    for until in (began + min(timeouts.CODE_SEEN_S, deadline_s), began + deadline_s):
        output: dict[int, bytearray] = {}
        read_child(process, output, until, lambda text: b"\n" in text)
        texts = [text + bytes(more) for text, more in zip(texts, output.values(), strict=True)]
        if not any(texts):
            break
    return texts[0], texts[1]


CODE = Section(
    {"code": "the files of each `--code` path; `git status`; the installed distributions"},
    read=lambda request: read_code(request.code_paths, request.parts_s),
)
