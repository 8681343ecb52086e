"""TAB in real shells, and what is offered there."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from ncclcheck.cli.completion import any_check, check_names, dtypes, ops, sizes
from tests.cli.command_line import clean_environment

ROOT = Path(__file__).parents[2]
COMMAND = click.Context(click.Command("preflight"))
OPTION = click.Option(["--select"])
BASH = """
source <(_NCCLCHECK_COMPLETE=bash_source ncclcheck)
COMP_WORDS=({words}); COMP_CWORD={last}
{function} ncclcheck
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


def offered(complete: object, begun: str) -> list[str]:
    assert callable(complete)
    return [item.value for item in complete(COMMAND, OPTION, begun)]


def test_checks_are_offered_by_slug_and_by_code_and_after_a_comma() -> None:
    assert offered(check_names, "shm") == ["shm-small"]
    assert offered(check_names, "gpu-count,gpu_c") == []
    assert offered(check_names, "shm-small,gpu_c") == ["shm-small,gpu-count"]
    assert "NC401" in offered(check_names, "NC4")
    assert set(offered(any_check, "")) > set(offered(check_names, ""))


def test_collectives_sizes_and_types_are_offered() -> None:
    assert offered(ops, "all_reduce,all-g") == ["all_reduce,all_gather"]
    assert offered(sizes, "1M-") == ["1M-1G", "1M-1G:4x", "1M-16M:+1M"]
    assert "bfloat16" in offered(dtypes, "bf")


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """An environment in which `ncclcheck` is a command."""
    program = tmp_path / "ncclcheck"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m ncclcheck "$@"\n')
    program.chmod(0o755)
    return clean_environment(PYTHONPATH=str(ROOT), PATH=f"{tmp_path}:{os.environ['PATH']}")


def shell(environ: dict[str, str], *command: str) -> str:
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False, timeout=60)
    assert done.stderr == "", done
    return done.stdout


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("ncclcheck pref", ["preflight"]),
        ("ncclcheck preflight --select shm", ["shm-small"]),
        ("ncclcheck bench --ops all_reduce,all_g", ["all_reduce,all_gather"]),
        ("ncclcheck nonsense zz", []),
        ("ncclcheck preflight -- tor", []),
    ],
)
def test_bash_completes(environ: dict[str, str], line: str, expected: list[str]) -> None:
    script = BASH.format(words=line, last=len(line.split()) - 1, function="_ncclcheck_completion")
    assert shell(environ, "bash", "--norc", "-c", script).split() == expected


@pytest.mark.parametrize(
    ("name", "mark"), [("zsh", "compdef"), ("fish", "complete --no-files --command ncclcheck")]
)
def test_other_shells_take_their_script(environ: dict[str, str], name: str, mark: str) -> None:
    if shutil.which(name) is None:
        pytest.skip(f"there is no {name}")
    script = shell({**environ, "_NCCLCHECK_COMPLETE": f"{name}_source"}, "ncclcheck")
    assert mark in script
    shell(environ, name, "-n", "-c", script)


def test_the_script_is_an_answer_and_no_error(environ: dict[str, str]) -> None:
    done = subprocess.run(
        ["ncclcheck"],
        env={**environ, "_NCCLCHECK_COMPLETE": "bash_source"},
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0
