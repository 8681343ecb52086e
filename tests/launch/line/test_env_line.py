"""`env`: its own options, what it sets and takes away, and where its command begins."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from ncclcheck.launch.line.env_line import EnvRun, applied, read_env
from ncclcheck.model.errors import UsageError

HERE = {"A": "1", "B": "2"}


@pytest.mark.parametrize(
    ("words", "run"),
    [
        (["C=3", "A=", "cmd", "D=4"], EnvRun(("cmd", "D=4"), {"C": "3", "A": ""})),
        (["-u", "A", "cmd"], EnvRun(("cmd",), {"A": None})),
        (["-uA", "--unset=B", "cmd"], EnvRun(("cmd",), {"A": None, "B": None})),
        (["--unset", "A", "--", "cmd"], EnvRun(("cmd",), {"A": None})),
        (["-i", "A=9", "cmd"], EnvRun(("cmd",), {"A": "9", "B": None})),
        (["-", "cmd"], EnvRun(("cmd",), {"A": None, "B": None})),
        (["-iu", "Z", "cmd"], EnvRun(("cmd",), {"A": None, "B": None, "Z": None})),
        (["-C", "/x", "-v", "--block-signal=INT", "cmd"], EnvRun(("cmd",), {}, "/x")),
        (["--chdir=/x", "cmd", "-u", "A"], EnvRun(("cmd", "-u", "A"), {}, "/x")),
        (["-S", "-u A C=3 cmd 'a b'", "c"], EnvRun(("cmd", "a b", "c"), {"A": None, "C": "3"})),
        (["-vS", "cmd x"], EnvRun(("cmd", "x"), {})),
        (["C=3"], EnvRun((), {"C": "3"})),
    ],
    ids=str,
)
def test_changes_and_command(words: list[str], run: EnvRun) -> None:
    assert read_env(words, HERE) == run


@pytest.mark.skipif(shutil.which("env") is None, reason="needs env")
@pytest.mark.parametrize(
    "words",
    [["-u", "A", "C=3"], ["-i", "C=3"], ["-iu", "Z", "A=9"], ["--unset=B", "--", "A="], ["-S", "-uA C=5"]],
    ids=str,
)
def test_the_environment_is_what_the_real_one_makes(words: list[str]) -> None:
    program = shutil.which("env")
    done = subprocess.run(
        [str(program), *words, str(program)], env=HERE, capture_output=True, text=True, check=True
    )
    assert applied(HERE, read_env([*words, "env"], HERE).changes) == dict(
        line.split("=", 1) for line in done.stdout.splitlines()
    )


def test_quotes_that_do_not_match() -> None:
    with pytest.raises(UsageError, match="no closing quotation"):
        read_env(["-S", "torchrun 'train.py"], HERE)
