"""NC939 collective-mismatch: lines of several versions, launchers and wordings mean it."""

from __future__ import annotations

from tests.checks.logs.explaining import assert_cause


def test_ops_differ() -> None:
    text = (
        "[rank0]:[E1 00:00:00.1 ProcessGroupNCCL.cpp:607] [Rank 0] Watchdog caught collective operation "
        "timeout: WorkNCCL(SeqNum=88, OpType=_ALLGATHER_BASE, NumelIn=5, NumelOut=20, Timeout(ms)=600000"
        ") ran for 600001 milliseconds before timing out.\n"
        "[rank1]:[E1 00:00:00.1 ProcessGroupNCCL.cpp:607] [Rank 1] Watchdog caught collective operation "
        "timeout: WorkNCCL(SeqNum=88, OpType=ALLREDUCE, NumelIn=500, NumelOut=500, Timeout(ms)=600000) r"
        "an for 600001 milliseconds before timing out.\n"
        "[rank2]:[E1 00:00:00.1 ProcessGroupNCCL.cpp:607] [Rank 2] Watchdog caught collective operation "
        "timeout: WorkNCCL(SeqNum=88, OpType=ALLREDUCE, NumelIn=500, NumelOut=500, Timeout(ms)=600000) r"
        "an for 600001 milliseconds before timing out.\n"
    )
    assert_cause(text, "collective-mismatch", {"rank 0"})


def test_gloo_sizes() -> None:
    text = (
        "[rank1]: RuntimeError: [enforce fail at ../third_party/gloo/gloo/transport/tcp/pair.cc:446] op."
        "preamble.length <= op.nbytes. 8192 vs 4096\n"
    )
    assert_cause(text, "collective-mismatch")
