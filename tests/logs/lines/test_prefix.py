"""Labels before a message are taken off and remembered, in any order and number."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncclcheck.logs.lines.prefix import is_name, parse


@pytest.mark.parametrize(
    ("line", "message", "told"),
    [
        ("3: hello", "hello", {"task": 3}),
        ("(VllmWorker rank=3 pid=882) hello", "hello", {"rank": 3}),
        ("(RayWorkerWrapper pid=581, ip=10.30.1.7) hello", "hello", {"host": "10.30.1.7"}),
        ("n3 kernel: hello", "hello", {"host": "n3"}),
        (" 12: hello", "hello", {"task": 12}),
        ("[1,7]<stderr>:hello", "hello", {"task": 7}),
        ("[prterun-head-123@1,7]<stdout>: hello", "hello", {"task": 7}),
        ("[default5]:[rank13]: hello", "hello", {"local_rank": 5, "rank": 13}),
        ("[rank2]: [rank2]: hello", "hello", {"rank": 2}),
        ("Rank 4: hello", "hello", {"rank": 4}),
        ("[rank 4] hello", "hello", {"rank": 4}),
        ("rank 4 step 10", "step 10", {"rank": 4}),
        ("[pod/job-worker-1/torch] hello", "hello", {"host": "job-worker-1"}),
        ("node01: hello", "hello", {"word": "node01"}),
        ("[node01] hello", "hello", {"word": "node01"}),
        ("Mar  4 10:11:12 node7 kernel: hello", "hello", {"host": "node7"}),
        ("\x1b[31m3: \x1b[0mhello", "hello", {"task": 3}),
        ("2025-03-14T09:41:07.123456Z [node1] 3: hello", "hello", {"word": "node1", "task": 3}),
        ("[ 4012.118821] hello", "hello", {}),
        ("[Sun Feb 23 16:24:18 2025] hello", "hello", {}),
    ],
)
def test_what_launchers_write(line: str, message: str, told: dict[str, object]) -> None:
    found = parse(line)
    assert found.message == message
    assert {name: getattr(found, name) for name in told} == told


@pytest.mark.parametrize(
    "line",
    [
        "RuntimeError: CUDA error",
        "torch.distributed.DistBackendError: NCCL error",
        "srun: error: n1: task 3: Killed",
        "WARNING: something",
        '  File "x.py", line 3',
        "Last error:",
    ],
)
def test_what_only_looks_like_a_label_stays(line: str) -> None:
    assert parse(line).message == line


def test_times_compare() -> None:
    stamps = ["[2025-03-14 09:42:29] x", "[E314 09:42:30.458 y.cpp:1] x", "Mar 14 09:42:31 h kernel: x"]
    seconds = [parse(stamp).time_s for stamp in stamps]
    assert [round(b - a) for a, b in pairwise(seconds) if a and b] == [1, 1]


def test_the_frame_of_a_traceback_keeps_its_indentation() -> None:
    assert parse('3: [rank1]:   File "x.py", line 3').message == '  File "x.py", line 3'


def test_names_are_no_levels_and_no_exceptions() -> None:
    assert is_name("gpu-node-17")
    assert not any(is_name(word) for word in ("INFO", "ValueError", "srun", "12"))


@given(st.text(max_size=300))
def test_any_text_gives_an_answer(text: str) -> None:
    assert isinstance(parse(text).message, str)
