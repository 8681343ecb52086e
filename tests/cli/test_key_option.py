"""--key-file and NCCLCHECK_KEY: what is taken, and what is refused without showing it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ncclcheck.cli.key_option import given_key, key_or_refusal
from ncclcheck.exchange.trust.run_key import RefusedKey
from ncclcheck.model.errors import UsageError

SECRET = "0123456789abcdef" * 2


def key_file(folder: Path, text: str = f"{SECRET}\n", mode: int = 0o600) -> str:
    file = folder / "key"
    file.write_text(text)
    file.chmod(mode)
    return str(file)


def test_nothing_is_given() -> None:
    assert given_key({}, {}) is None
    assert given_key({}, {"NCCLCHECK_KEY": ""}) is None


def test_the_file_wins_over_the_variable(tmp_path: Path) -> None:
    of_file = given_key({"key_file": key_file(tmp_path)}, {"NCCLCHECK_KEY": "x" * 40})
    of_variable = given_key({}, {"NCCLCHECK_KEY": f" {SECRET}"})
    assert of_file is not None
    assert of_variable is not None
    assert of_file.secret == of_variable.secret == SECRET.encode()
    assert (of_file.by, of_variable.by) == ("--key-file", "NCCLCHECK_KEY")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o622, 0o666])
def test_a_file_that_others_may_read_is_refused(tmp_path: Path, mode: int) -> None:
    if os.geteuid() != 0 and mode == 0o640:
        mode = 0o660
    with pytest.raises(UsageError, match="chmod 600"):
        given_key({"key_file": key_file(tmp_path, mode=mode)}, {})


def test_a_file_of_another_user_is_refused(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root may give a file away")
    file = key_file(tmp_path)
    os.chown(file, 4242, 4242)
    with pytest.raises(UsageError, match="another user"):
        given_key({"key_file": file}, {})


@pytest.mark.parametrize("text", ["", "short", "x" * 5000])
def test_a_key_of_a_wrong_length_is_refused_and_not_shown(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError) as refused:
        given_key({"key_file": key_file(tmp_path, text)}, {})
    assert "--key-file" in str(refused.value)
    assert not text or text not in str(refused.value)


def test_a_refused_file_that_could_be_read_still_proves_who_refuses_it(tmp_path: Path) -> None:
    found = key_or_refusal({"key_file": key_file(tmp_path, mode=0o644)}, {})
    assert isinstance(found, RefusedKey)
    assert found.key is not None
    assert found.key.secret == SECRET.encode()
    assert SECRET not in f"{found!r} {found.why}"
    absent = key_or_refusal({"key_file": str(tmp_path / "absent")}, {})
    assert isinstance(absent, RefusedKey)
    assert absent.key is None


@pytest.mark.parametrize("kind", ["fifo", "folder", "loop", "endless"])
def test_what_is_no_file_is_refused(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "key"
    if kind == "fifo":
        os.mkfifo(file)
    elif kind == "folder":
        file.mkdir()
    else:
        file.symlink_to("key" if kind == "loop" else "/dev/zero")
    found = key_or_refusal({"key_file": str(file)}, {})
    assert isinstance(found, RefusedKey)
    assert found.why.startswith("--key-file")
    assert found.key is None


def test_what_meets_nobody_needs_no_key() -> None:
    assert given_key({"from_": "saved.json", "key_file": "/nowhere"}, {}) is None
