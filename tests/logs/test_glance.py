"""The first glance lets nothing through the net that a topic would have caught."""

from __future__ import annotations

import pytest

from ncclcheck.logs.glance import QUIET_STARTS, may_mean_something
from tests.checks.logs.explaining import read

MEANT = [
    "Duplicate GPU detected : rank 3 and rank 2 both on CUDA device 50",
    "RuntimeError: x",
    "ncclRemoteError: A call failed",
    "#  Rank  0 Group  0 Pid 303554 on cnode2-002 device  0 [0000:1b:00] NVIDIA H100",
    "  host      : n0",
    "  rank      : 1 (local_rank: 1)",
    "exit code 137",
    "srun: error: n1: task 6: Out Of Memory",
    "mlx5_0\t1\t0\tfe80:0000:0000:0000:946d:9aff:fe11:1d5c\t\t\tv1\tens2f0",
    "10.5.0.0/16 dev ens6f1 proto kernel scope link src 10.5.1.4 metric 100",
]


@pytest.mark.parametrize("line", MEANT)
def test_lines_with_a_meaning_pass(line: str) -> None:
    assert may_mean_something(line.encode())


@pytest.mark.parametrize(
    "line",
    [
        "iteration 12/500 | learning rate: 1.0E-4 | lm loss: 2.38 | grad norm: 1.2",
        "step 12 loss 0.33 lr 1e-4 tok/s 1234",
    ],
)
def test_progress_does_not(line: str) -> None:
    assert not may_mean_something(line.encode())


def test_a_warning_that_begins_like_a_quiet_line_is_read() -> None:
    assert b"INFO MNNVL" in QUIET_STARTS
    log = read("h:1:2 [0] x.cc:1 NCCL WARN MNNVL failed : IMEX not configured")
    assert any("IMEX" in one.text for one in log.events)
