"""A bug leaves a file to attach to an issue."""

from __future__ import annotations

from pathlib import Path

import pytest

from ncclcheck.cli.crash import describe, save_traceback


def raised() -> ValueError:
    try:
        raise ValueError("for the test")
    except ValueError as error:
        return error


def test_the_traceback_is_saved_where_it_can_be(tmp_path: Path) -> None:
    path = save_traceback(raised(), [tmp_path / "no-such-directory", tmp_path])
    assert path is not None
    assert path.parent == tmp_path
    text = path.read_text()
    assert text.startswith("ncclcheck 0.1.0, Python 3")
    assert 'raise ValueError("for the test")' in text


def test_it_goes_to_the_working_directory_otherwise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = save_traceback(raised())
    assert path is not None
    assert (tmp_path / path.name).exists()


def test_the_user_is_told_where_it_is() -> None:
    assert describe(raised(), Path("x.txt")) == (
        "ValueError: for the test (the traceback is in x.txt; please open an issue and attach it)"
    )
    assert describe(KeyError(), None).startswith("KeyError (the traceback could not be saved")
