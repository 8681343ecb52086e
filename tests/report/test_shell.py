"""Lines that a real shell takes."""

from __future__ import annotations

import subprocess

import pytest

from ncclcheck.report.shell import comment, export
from tests.report.reports import ADVICE


@pytest.mark.parametrize(
    "value", ["=eth0", "eth0,eth1", "^docker0", "a b", "it's $HOME `id`", "~", "", "*", "a\nb"]
)
def test_every_value_arrives_as_it_is(value: str) -> None:
    script = export("X", value) + '\nprintf "%s." "$X"'
    done = subprocess.run(["sh", "-eu", "-c", script], capture_output=True, text=True, check=True, timeout=20)
    assert done.stdout == value + "."


def test_nothing_is_unset() -> None:
    assert export("X", None) == "unset X"


def test_every_value_is_quoted_for_zsh() -> None:
    assert export("NCCL_SOCKET_IFNAME", "=eth0") == "export NCCL_SOCKET_IFNAME='=eth0'"


def test_the_comment_tells_why_and_how_it_is_known() -> None:
    asked, rule = ADVICE.env
    assert comment(asked) == "# all nodes reach each other there (proven by asking NCCL: 4 of 4 bound eth0)"
    assert comment(rule) == "# it names nothing there (by rule, not tried here)"
