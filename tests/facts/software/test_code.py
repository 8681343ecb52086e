"""The code's identity, from real git repositories and real folders."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ncclcheck.facts.software.code import packages_hash, read_code, read_packages
from ncclcheck.facts.software.git import read_git, why_refused
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import CodePath


def _git(folder: Path, *words: str) -> str:
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "safe.directory=*"]
    done = subprocess.run(
        ["git", "-C", str(folder), *identity, *words], capture_output=True, text=True, timeout=30, check=True
    )
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "train.py").write_text("run()\n")
    _git(folder, "init", "--quiet")
    _git(folder, "add", ".")
    _git(folder, "commit", "--quiet", "-m", "first")
    return folder


def _one(path: Path | str) -> CodePath:
    (found,) = read_code([str(path)], 20).paths
    return found


def test_a_clean_repository_gives_its_commit_also_from_below_and_from_a_file(repository: Path) -> None:
    commit = _git(repository, "rev-parse", "HEAD")
    for path in (repository, repository / "src", repository / "src" / "train.py"):
        one = _one(path)
        assert (one.path, one.git_commit, one.git_dirty, one.files) == (str(path), commit, False, 1)


def test_a_changed_file_is_dirty_and_hashes_differently(repository: Path) -> None:
    clean = _one(repository)
    (repository / "src" / "train.py").write_text("run(2)\n")
    dirty = _one(repository)
    assert (clean.git_dirty, dirty.git_dirty) == (False, True)
    assert dirty.git_commit == clean.git_commit
    assert dirty.tree_sha256 != clean.tree_sha256


def test_an_untracked_file_is_not_dirt_but_part_of_the_tree(repository: Path) -> None:
    before = _one(repository)
    (repository / "run.log").write_text("step 1")
    after = _one(repository)
    assert after.git_dirty is False
    assert after.tree_sha256 != before.tree_sha256


def test_asking_writes_nothing_into_the_repository(repository: Path) -> None:
    index = repository / ".git" / "index"
    os.utime(repository / "src" / "train.py", (1, 1))  # makes a status want to refresh the index
    before = (index.stat().st_mtime_ns, index.read_bytes())
    assert read_git(str(repository), 20)[1] is False
    assert (index.stat().st_mtime_ns, index.read_bytes()) == before


def test_no_program_named_in_the_repository_is_started_to_watch_files(
    repository: Path, tmp_path: Path
) -> None:
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\n")
    trap.chmod(0o755)
    _git(repository, "config", "core.fsmonitor", str(trap))
    assert read_git(str(repository), 20)[1] is False
    assert not (tmp_path / "sprung").exists()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
def test_a_repository_of_another_user_is_read_all_the_same(repository: Path) -> None:
    commit = _git(repository, "rev-parse", "HEAD")
    for path in (repository, *repository.rglob("*")):
        os.chown(path, 1234, 1234)
    assert read_git(str(repository), 20) == (commit, False)


def test_a_repository_without_a_commit_has_none(tmp_path: Path) -> None:
    _git(tmp_path, "init", "--quiet")
    none_yet = Missing("absent", "the repository has no commit yet")
    assert read_git(str(tmp_path), 20) == (none_yet, none_yet)


def test_a_folder_without_git_still_has_a_hash(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x")
    one = _one(tmp_path)
    assert one.git_commit == one.git_dirty == Missing("absent", "not in a git repository")
    assert isinstance(one.tree_sha256, str)
    assert one.files == 1


def test_a_path_that_is_not_there_is_absent(tmp_path: Path) -> None:
    one = _one(tmp_path / "nothing")
    assert one.tree_sha256 == one.files == Missing("absent", f"{tmp_path}/nothing: No such file or directory")


def test_what_git_says_when_it_refuses_is_told_apart() -> None:
    assert why_refused("fatal: detected dubious ownership in repository at '/x'").missing == "denied"
    assert why_refused("fatal: not a git repository (or any of the parent directories)").missing == "absent"
    assert why_refused("fatal: bad object HEAD") == Missing("error", "fatal: bad object HEAD")


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder other users may enter, as pytest's own may not be."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.mark.skipif(os.getuid() != 0, reason="needs root to become a user who may not read")
def test_an_unreadable_file_makes_the_whole_hash_denied(open_folder: Path) -> None:
    (open_folder / "readable.py").write_text("x")
    (open_folder / "secret.py").write_text("x")
    (open_folder / "secret.py").chmod(stat.S_IRUSR)
    program = (
        "import sys, os; sys.path[:] = sys.argv.pop(1).split(':'); "
        "import ncclcheck.facts.software.code_child as child\n"
        "os.setuid(65534)\n"
        "child.main()"
    )
    path = ":".join([str(Path(__file__).parents[3]), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", program, path, str(open_folder), "5"],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert (
        done.stdout.strip()
        == f'{{"missing": "denied", "detail": "{open_folder}/secret.py: Permission denied"}}'
    )


def test_the_packages_of_this_python_are_listed_with_their_versions() -> None:
    from importlib.metadata import distributions

    listed = read_packages()
    for distribution in distributions():
        name = distribution.metadata["Name"].lower().replace("_", "-").replace(".", "-")
        assert listed[name] == distribution.version


def test_the_packages_hash_does_not_depend_on_their_order() -> None:
    assert packages_hash({"a": "1", "b": "2"}) == packages_hash({"b": "2", "a": "1"})
    assert packages_hash({"a": "1"}) != packages_hash({"a": "2"})
    code = read_code([], 20)
    assert code.packages_sha256 == packages_hash(read_packages())
