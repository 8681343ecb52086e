"""How a shell's prompt looks."""

from __future__ import annotations

import re

import pytest

from ncclcheck.logs.lines.prompts import AT_HOST, BRACKETED, ENVIRONMENT, SIGNS

_BEFORE_A_COMMAND = re.compile(rf"^{ENVIRONMENT}(?:{BRACKETED}{SIGNS}|{AT_HOST}{SIGNS}) \S")


@pytest.mark.parametrize(
    "line",
    [
        "[ann@gpu07 run]$ torchrun t.py",
        "(base) [root@gpu07 ~]# nvidia-smi",
        "ann@gpu07:~/run$ ls",
        "(llm) ann@gpu07 ~ % ls",
        "root@gpu07:/# ls",
    ],
)
def test_a_prompt_is_seen_before_a_command(line: str) -> None:
    assert _BEFORE_A_COMMAND.match(line)


@pytest.mark.parametrize(
    "line",
    ["[rank0]: step 3", "step 3 of 5", "pull git@github.com:a/b.git", "[12/100] loss 2.1", "cost: 5 $ each"],
)
def test_a_line_of_a_program_is_none(line: str) -> None:
    assert _BEFORE_A_COMMAND.match(line) is None
