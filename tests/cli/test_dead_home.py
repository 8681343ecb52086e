"""A home folder that does not answer is not opened while modules are imported, and the job keeps its HOME."""

from __future__ import annotations

import os
import pwd
import threading
from pathlib import Path

import pytest

from ncclcheck.cli import dead_home
from ncclcheck.cli.dead_home import home_folder, import_beside_a_dead_home
from ncclcheck.cli.main import run_command


def test_a_home_that_answers_is_no_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for home in (str(tmp_path), "/nonexistent"):
        monkeypatch.setenv("HOME", home)
        monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
        assert import_beside_a_dead_home() == ""
        assert os.environ["HOME"] == home


def test_a_user_without_a_name_and_a_home_is_no_matter(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def unknown(number: int) -> None:
        raise KeyError(number)

    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    assert home_folder() == ""
    assert import_beside_a_dead_home() == ""
    assert run_command(["--version"]) == 0
    assert "bug" not in capsys.readouterr().err


def test_one_that_does_not_is_told_and_left_to_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/dead")
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setattr(dead_home, "HOME_S", 0.1)
    monkeypatch.setattr(os, "stat", lambda _: threading.Event().wait(5))
    assert "the home folder /dead does not answer" in import_beside_a_dead_home()
    assert os.environ["HOME"] == "/dead"
    assert "XDG_CONFIG_HOME" not in os.environ
