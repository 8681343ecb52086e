"""What a Python interpreter runs."""

from __future__ import annotations

import pytest

from ncclcheck.launch.line.python_line import PythonRun, is_python, read_python


@pytest.mark.parametrize(
    ("words", "run"),
    [
        (["train.py", "-m", "x"], PythonRun("train.py", rest=("-m", "x"))),
        (["-u", "-W", "error", "-Xdev", "train.py"], PythonRun("train.py")),
        (["-m", "pkg.train", "--lr", "1"], PythonRun(module="pkg.train", rest=("--lr", "1"))),
        (["-um", "pkg"], PythonRun(module="pkg")),
        (["-mpkg", "x"], PythonRun(module="pkg", rest=("x",))),
        (["-c", "print()", "train.py"], PythonRun(rest=("train.py",))),
        (["--check-hash-based-pycs", "never", "-I", "train.py"], PythonRun("train.py")),
        (["-"], PythonRun()),
        ([], PythonRun()),
        (["--", "train.py"], PythonRun("train.py")),
    ],
)
def test_script_module_or_neither(words: list[str], run: PythonRun) -> None:
    assert read_python(words) == run


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        ("python", True),
        ("/opt/x/bin/python3.12", True),
        ("pypy3", True),
        ("python3.13t", True),
        ("ipython", False),
    ],
)
def test_its_name(name: str, is_one: bool) -> None:
    assert is_python(name) is is_one
