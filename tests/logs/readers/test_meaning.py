"""Lines become events: tracebacks, torchrun's table, what is only said at exit."""

from __future__ import annotations

from ncclcheck.logs.patterns.topics_harmless import why_harmless
from ncclcheck.model.events import PythonException, Remark, WorkerExit
from tests.checks.logs.explaining import read

TABLE = """
train.py FAILED
Failures:
[1]:
  time      : 2026-11-21_01:34:07
  host      : node02
  rank      : 3 (local_rank: 1)
  exitcode  : -15 (pid: 8323)  (SIGTERM)
Root Cause (first observed failure):
[0]:
  host      : node02
  rank      : 2 (local_rank: 0)
  exitcode  : 1 (pid: 8321)
"""


def test_torchruns_table_is_put_together() -> None:
    ends = [event for event in read(TABLE).events if isinstance(event, WorkerExit)]
    assert [(end.place.rank, end.place.host, end.exit_code, end.first) for end in ends] == [
        (3, "node02", -15, False),
        (2, "node02", 1, True),
    ]


def test_two_ranks_write_their_tracebacks_into_each_other() -> None:
    log = read(
        """
[rank0]: Traceback (most recent call last):
[rank1]: Traceback (most recent call last):
[rank0]:   File "a.py", line 1, in f
[rank1]:   File "b.py", line 2, in g
[rank1]: my.Trouble: one
[rank0]: ValueError: zero
"""
    )
    found = [event for event in log.events if isinstance(event, PythonException)]
    assert [(exception.place.rank, exception.class_name, exception.where) for exception in found] == [
        (1, "my.Trouble", 'File "b.py", line 2, in g'),
        (0, "ValueError", 'File "a.py", line 1, in f'),
    ]


def test_what_python_ignores_is_no_failure() -> None:
    log = read(
        "Exception ignored in: <function f>\nTraceback (most recent call last):\nAssertionError: can only test\n"
    )
    assert [event.kind for event in log.events if isinstance(event, PythonException)] == ["ignored"]


def test_lines_of_nccl_at_level_info_are_no_alarm() -> None:
    log = read(
        "n1:1:1 [0] NCCL INFO NET/Plugin : dlerror=libnccl-net.so: cannot open shared object file: No such file"
    )
    assert {event.topic for event in log.events if isinstance(event, Remark)} == {"harmless"}


def test_harmless_lines_have_a_reason() -> None:
    assert why_harmless("Warning: WARNING: process group has NOT been destroyed before we destruct")
    assert not why_harmless("CUDA out of memory")


def test_the_line_after_last_error_is_nccls_also_with_the_name_of_its_function() -> None:
    log = read("Last error:\nsocketPoll: Connection closed\n$ for host in a b; do echo $host; done\n")
    assert [
        event.text for event in log.events if isinstance(event, Remark) and event.topic == "nccl-warn"
    ] == ["Last error: socketPoll: Connection closed"]
