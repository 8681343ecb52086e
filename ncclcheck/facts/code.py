"""Identifies the code that would run: git commit, a hash over each tree, and the installed packages."""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Sequence

from ncclcheck.facts.child import run_python_child
from ncclcheck.facts.deadline import start
from ncclcheck.facts.files import readable
from ncclcheck.facts.git import read_git
from ncclcheck.facts.packages import installed
from ncclcheck.model.fact import Fact, Missing, Why
from ncclcheck.model.facts import Code, CodePath

# What a child needs to start, and to end after its own deadline, before ours.
_CHILD_SLACK_S = 1.0


def read_code(paths: Sequence[str], deadline_s: float = 8.0) -> Code:
    """The identity of each path, all read at once, and of the packages this Python sees."""
    end = time.monotonic() + deadline_s
    started = [(path, start(_tree, path, deadline_s), start(read_git, path, deadline_s)) for path in paths]
    packages = start(read_packages).result(deadline_s)
    found = []
    for path, tree, git in started:
        hashed, asked = tree.result(end - time.monotonic()), git.result(end - time.monotonic())
        sha256, files = (hashed, hashed) if isinstance(hashed, Missing) else hashed
        commit, dirty = (asked, asked) if isinstance(asked, Missing) else asked
        found.append(CodePath(readable(path), sha256, files, commit, dirty))
    listed = packages if isinstance(packages, Missing) else packages_hash(packages)
    return Code(paths=tuple(found), packages_sha256=listed, packages=packages)


def read_packages() -> dict[str, str]:
    """Version by normalised name of every package on this Python's path."""
    return {name: package.version for name, package in sorted(installed(sys.path).items())}


def packages_hash(packages: dict[str, str]) -> str:
    """SHA-256 over the lines `name==version` in order of the names."""
    lines = "".join(f"{name}=={packages[name]}\n" for name in sorted(packages))
    return hashlib.sha256(lines.encode()).hexdigest()


def _tree(path: str, deadline_s: float) -> Fact[tuple[str, int]]:
    own_deadline_s = max(deadline_s - _CHILD_SLACK_S, deadline_s / 2)
    answer = run_python_child(
        "ncclcheck.facts.code_child", [path, str(own_deadline_s)], deadline_s=deadline_s
    )
    if isinstance(answer, Missing):
        return answer
    try:
        words = json.loads(answer.stdout)
    except ValueError:
        text = answer.stderr.decode("utf-8", "replace").strip()[-500:]
        return Missing("error", f"{readable(path)}: the hashing child ended with {answer.returncode}: {text}")
    if "missing" in words:
        why: Why = words["missing"]
        return Missing(why, readable(words["detail"]))
    return words["sha256"], words["files"]
