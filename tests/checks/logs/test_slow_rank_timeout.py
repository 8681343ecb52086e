"""NC941 slow-rank-timeout: lines of several versions, launchers and wordings mean it."""

from __future__ import annotations

from tests.checks.logs.explaining import assert_cause


def test_a_checkpoint() -> None:
    text = (
        "rank 0: saving checkpoint to /ckpt/step100 (1.2 TB), 41% written\n"
        "[rank1]:[E1 00:00:00.1 ProcessGroupNCCL.cpp:607] [Rank 1] Watchdog caught collective operation "
        "timeout: WorkNCCL(SeqNum=88, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran f"
        "or 600001 milliseconds before timing out.\n"
        "[rank2]:[E1 00:00:00.1 ProcessGroupNCCL.cpp:607] [Rank 2] Watchdog caught collective operation "
        "timeout: WorkNCCL(SeqNum=88, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran f"
        "or 600001 milliseconds before timing out.\n"
    )
    assert_cause(text, "slow-rank-timeout", {"rank 0"})
