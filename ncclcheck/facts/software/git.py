"""Asks git for the commit of a working tree and whether it was changed since."""

from __future__ import annotations

import os

from ncclcheck.facts.child import run_child
from ncclcheck.model.fact import Fact, Missing

# Not even whether the path is a folder is looked at in this process: on a dead mount it could not end any more
_IN_ITS_FOLDER = (
    'folder=$1; shift; [ -d "$folder" ] || folder=$(dirname -- "$(readlink -f -- "$folder")"); '
    'exec git -C "$folder" "$@"'
)
_NO_COMMAND = 127  # of a shell


def read_git(path: str, deadline_s: float) -> tuple[Fact[str], Fact[bool]]:
    """Return the commit id, and whether tracked files differ from it, of the repository around `path`.

    Nothing is written (no index refresh) and no program of the repository's configuration is started for a file
    watcher. A repository of another user is read all the same (safe.directory): jobs often run as someone else.
    """
    git = ["-c", "safe.directory=*", "-c", "core.fsmonitor=false"]
    status = ["status", "--porcelain=v2", "--branch", "--untracked-files=no"]
    shell = ["sh", "-c", _IN_ITS_FOLDER, "sh", path]
    answer = run_child([*shell, *git, *status], deadline_s=deadline_s, env=_environment())
    if isinstance(answer, Missing):
        return answer, answer
    if answer.returncode == _NO_COMMAND:
        missing = Missing("absent", "git: No such file or directory")
        return missing, missing
    if answer.returncode != 0:
        missing = why_refused(answer.stderr.decode("utf-8", "replace").strip())
        return missing, missing
    return parse_status(answer.stdout.decode("utf-8", "replace"))


def parse_status(text: str) -> tuple[Fact[str], Fact[bool]]:
    """Return commit and dirtiness from `git status --porcelain=v2 --branch` (git-status(1))."""
    commit: Fact[str] = Missing("error", "git status named no commit")
    dirty = False
    for line in text.splitlines():
        if line.startswith("# branch.oid "):
            oid = line.removeprefix("# branch.oid ")
            if oid == "(initial)":
                none_yet = Missing("absent", "the repository has no commit yet")
                return none_yet, none_yet
            commit = oid
        elif line and not line.startswith("#"):
            dirty = True
    return commit, dirty


def why_refused(stderr: str) -> Missing:
    """Return what git's complaint means: no repository here, one we may not read, or something else."""
    last = stderr.splitlines()[-1] if stderr else "git gave no reason"
    if "not a git repository" in stderr:
        return Missing("absent", "not in a git repository")
    if "ermission denied" in stderr or "dubious ownership" in stderr:
        return Missing("denied", last)
    return Missing("error", last)


def _environment() -> dict[str, str]:
    """Return our environment without GIT_DIR and its like, plus what keeps git quiet and English."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return {**plain, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
