"""Launchers' words about the ends of workers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncclcheck.logs.readers.exits import Ended, read


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "E0314 api.py:869] failed (exitcode: -6) local_rank: 3 (pid: 7) of binary: python",
            Ended(code=-6, local_rank=3),
        ),
        ("  exitcode  : 1 (pid: 8321)", Ended(code=1)),
        ("  Process name: [[4411,1],5]", Ended(code=1, tasks=(5,))),
        (
            "MPICH ERROR [Rank 5] [job id 8.0] [Fri Mar 14 11:56:06 2025] [nid0042] - Abort(1)",
            Ended(code=1, tasks=(5,), host="nid0042"),
        ),
        ("This process on node 10.9.0.4 was started with:", Ended(code=1, host="10.9.0.4")),
        ("  host      : node02", Ended(host="node02")),
        ("  rank      : 3 (local_rank: 1)", Ended(rank=3)),
        ("Root Cause (first observed failure):", Ended(root=True)),
        (
            "srun: error: n1: tasks 4-6,9: Exited with exit code 2",
            Ended(code=2, tasks=(4, 5, 6, 9), host="n1"),
        ),
        ("srun: error: n1: task 6: Out Of Memory", Ended(code=-9, tasks=(6,), host="n1")),
        ("exit code 137", Ended(code=-9)),
        ("['python', '--local_rank=3'] exits with return code = -9", Ended(code=-9)),
        (
            "mpirun noticed that process rank 6 with PID 22112 on node c6 exited on signal 11 (Segmentation fault).",
            Ended(code=-11, tasks=(6,), host="c6"),
        ),
        (
            "#  Rank  8 Group  0 Pid 283693 on cnode2-008 device  0 [0000:1b:00] NVIDIA H100",
            Ended(rank=8, host="cnode2-008", pid=283693),
        ),
    ],
)
def test_what_they_say(line: str, expected: Ended) -> None:
    assert list(read(line)) == [expected]


@given(st.text(max_size=200))
def test_any_text_gives_an_answer(text: str) -> None:
    assert len(list(read(text))) <= 1
