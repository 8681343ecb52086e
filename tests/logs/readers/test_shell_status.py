"""The line below `echo $?` is an exit status, and no other line is."""

from __future__ import annotations

import pytest

from ncclcheck.logs.readers.shell_status import Shell


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


def told(*lines: str) -> int | None:
    """Return the status that a session tells of its job."""
    shell = Shell()
    for number, line in enumerate(lines, start=1):
        status = shell.status(line, number)
        if status is not None:
            return status
        shell.read(line, number)
    return None


@pytest.mark.parametrize(
    "session",
    [
        ("me@n1:~$ torchrun t.py", "saved", "me@n1:~$ echo $?", "7"),
        ("$ torchrun t.py", '$ echo "exit: $?"', "exit: 7"),
        ("$ torchrun t.py | tee log", "$ echo ${PIPESTATUS[0]}", "7"),
        ("$ torchrun t.py | tee log", '$ echo "${PIPESTATUS[@]}"', "7 0"),
        ("$ torchrun t.py | tee log", "$ echo $?", "7"),
        ("$ set -o pipefail", "$ torchrun t.py | tee log", "$ echo $?", "7"),
        ('$ torchrun t.py; echo "rc=$?"', "step 1", "rc=7"),
        ("$ tail old.log", "$ torchrun t.py", "$ echo $?", "7"),
        ("# kubectl exec -it w-0 -- torchrun t.py", "# echo $?", "7"),
    ],
)
def test_the_status_of_the_job_is_told_in_many_forms(session: tuple[str, ...]) -> None:
    assert told(*session) == 7
    assert told(*session[:-1], session[-1].replace("7", "0")) == (
        None if session[1] == "$ echo $?" and "tee" in session[0] else 0
    )


@pytest.mark.parametrize(
    "command",
    [
        "tail -n 3 run.log",
        "cat run.log",
        "sudo dmesg -T",
        "kubectl -n train logs w-0",
        "sbatch train.sh",
        "nohup torchrun t.py > run.log 2>&1",
        "torchrun t.py > run.log 2>&1 &",
        "docker run --gpus all -d image torchrun t.py",
        "torchrun t.py || true",
        "torchrun t.py; date",
        "torchrun t.py | tee run.log",
    ],
)
def test_the_status_0_of_another_command_is_not_the_jobs(command: str) -> None:
    assert told("me@n1:~$ torchrun t.py", f"me@n1:~$ {command}", "me@n1:~$ echo $?", "0") is None


def test_output_of_another_command_is_no_command() -> None:
    assert (
        told("$ torchrun t.py", "$ cat run.log", "[##> ] 50% status", "> 3 errors", "$ echo $?", "0") is None
    )


def test_a_pipe_on_the_next_line_of_the_command_hides_its_status() -> None:
    assert told("$ torchrun \\", "    t.py 2>&1 | tee log", "$ echo $?", "0") is None


def test_the_second_question_is_about_echo() -> None:
    assert told("$ torchrun t.py", "$ echo $?", "x", "$ echo $?", "0") == 0
    shell = Shell()
    shell.read("$ echo $?", 1)
    assert shell.status("1", 2) == 1
    shell.read("$ echo $?", 3)
    assert shell.status("0", 4) is None
