"""The line below `echo $?` is an exit status, and no other line is."""

from __future__ import annotations

import pytest

from ncclcheck.logs.readers.shell import Shell


@pytest.mark.parametrize(
    "question", ["$ echo $?", "(env) me@node1:~/x$ echo $?", "[me@n1 ~]# echo $?", "echo $?"]
)
def test_the_next_line_is_the_status(question: str) -> None:
    shell = Shell()
    shell.read(question, 7)
    assert shell.is_asked
    assert shell.status(" 137 ", 8) == 137
    assert not shell.is_asked


@pytest.mark.parametrize(
    ("answer", "line"), [("0", 9), ("done", 8), ("4000000000", 8), ("999", 8), ("-1", 8)]
)
def test_anything_else_is_none(answer: str, line: int) -> None:
    shell = Shell()
    shell.read("$ echo $?", 7)
    assert shell.status(answer, line) is None
    assert not shell.is_asked


def test_what_was_asked_in_one_file_is_not_answered_in_the_next() -> None:
    shell = Shell()
    shell.read("$ echo $?", 7)
    shell.forget()
    assert shell.status("0", 8) is None
