"""`sh -c TEXT`: the one command that the text comes to, or that it is more than one."""

from __future__ import annotations

import subprocess

import pytest

from ncclcheck.launch.line.shell_line import ShellRun, read_shell

ENVIRON = {"N": "2", "K": "1", "ODD": "a b", "PATH": "/usr/bin:/bin"}


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (["-c", "run --nnodes $N --rank=${K} 'x y'"], ["run", "--nnodes", "2", "--rank=1", "x y"]),
        (["-lc", "exec run a"], ["run", "a"]),
        (["-euo", "pipefail", "-c", 'run "$N" \'$N\' "it\'s"'], ["run", "2", "$N", "it's"]),
        (["-euxo", "pipefail", "-c", "run"], ["run"]),
        (["-eco", "pipefail", "run a"], ["run", "a"]),
        (["--norc", "-c", "--", "run a", "name"], ["run", "a"]),
        (["-c", "A=$N B= run"], ["A=2", "B=", "run"]),
        (["-c", "run a | tee log"], ["run", "a"]),
        (["-c", "run a >> log"], ["run", "a"]),
        (["-c", "run $UNSET a # words"], ["run", "a"]),
        (["-c", "\n  run a\n"], ["run", "a"]),
    ],
    ids=str,
)
def test_one_command(words: list[str], command: list[str]) -> None:
    run = read_shell(words, ENVIRON)
    assert run is not None
    assert run.words == tuple(command)


@pytest.mark.parametrize(
    "text", ["run --nnodes $N --rank=${K} 'x y'", 'run "$N" \'$N\' "it\'s"', "run a\\ b $UNSET --x=$N$K"]
)
def test_the_words_are_those_that_a_real_shell_makes(text: str) -> None:
    shell = subprocess.run(
        ["bash", "-c", 'run() { printf "%s\\n" "$@"; }; ' + text],
        env=ENVIRON, capture_output=True, text=True, check=True,
    )  # fmt: skip
    run = read_shell(["-c", text], ENVIRON)
    assert run is not None
    assert list(run.words or ()) == ["run", *shell.stdout.splitlines()]


@pytest.mark.parametrize(
    "text",
    ["cd x && run", "cd x\nrun", "run; other", "run $(date)", "run `date`", "run $1", 'run "$@"', "run ${N:-3}",
     "run $ODD", "(run)", "run &", "run < file", "run 'open"],
)  # fmt: skip
def test_more_than_one_plain_command_is_unknown(text: str) -> None:
    run = read_shell(["-c", text], ENVIRON)
    assert run == ShellRun(text, None)


def test_a_script_in_a_file_is_not_read() -> None:
    assert read_shell(["run.sh", "-c", "run"], ENVIRON) is None
    assert read_shell([], ENVIRON) is None


def test_a_program_is_a_word_of_its_own() -> None:
    run = ShellRun("cd x;/usr/bin/srun a mpirun_not 'torchrun'", None)
    assert run.names(["mpirun", "srun"]) == "srun"
    assert run.names(["torchrun"]) == "torchrun"
    assert run.names(["mpirun"]) is None
