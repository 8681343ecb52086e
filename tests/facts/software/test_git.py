"""What git says of a working tree; `test_code.py` asks real repositories."""

from __future__ import annotations

from pathlib import Path

import pytest

from ncclcheck.facts.software.git import parse_status, read_git, why_refused
from ncclcheck.model.fact import Missing

COMMIT = "3f2c" * 10


def test_headers_alone_are_a_clean_tree() -> None:
    text = f"# branch.oid {COMMIT}\n# branch.head main\n# branch.ab +1 -0\n# stash 2\n"
    assert parse_status(text) == (COMMIT, False)


@pytest.mark.parametrize("change", ["1 .M N... 100644 100644 100644 a a f", "2 R. N... f\tg", "u UU N... f"])
def test_every_kind_of_change_is_dirt(change: str) -> None:
    assert parse_status(f"# branch.oid {COMMIT}\n# branch.head (detached)\n{change}\n") == (COMMIT, True)


def test_an_answer_without_a_commit_is_not_taken_for_one() -> None:
    commit, _ = parse_status("")
    assert isinstance(commit, Missing)
    assert commit.missing == "error"


def test_no_answer_by_the_deadline_is_missing_for_both(tmp_path: Path) -> None:
    commit, dirty = read_git(str(tmp_path), 0.0)
    assert isinstance(commit, Missing)
    assert commit == dirty
    assert commit.missing == "timeout"


def test_variables_that_point_git_elsewhere_are_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(Path(__file__).parents[3] / ".git"))
    absent = Missing("absent", "not in a git repository")
    assert read_git(str(tmp_path), 20) == (absent, absent)


def test_git_may_refuse_without_a_word() -> None:
    assert why_refused("") == Missing("error", "git gave no reason")
    assert why_refused("fatal: cannot open 'x': Permission denied").missing == "denied"
