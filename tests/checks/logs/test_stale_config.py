"""NC938 stale-config: lines of several versions, launchers and wordings mean it."""

from __future__ import annotations

from tests.checks.logs.explaining import assert_cause


def test_p2p_on_one_node() -> None:
    text = (
        "0: a:1:2 [0] NCCL INFO Using network IB\n"
        "1: b:1:2 [0] NCCL INFO NCCL_IB_DISABLE set by environment to 1.\n"
        "1: b:1:2 [0] NCCL INFO Using network Socket\n"
        "0: a:1:2 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.1<0>\n"
        "0: [rank0]:[E1 00:00:00.1 ProcessGroupNCCL.cpp:616] [Rank 0] Watchdog caught collective operati"
        "on timeout: WorkNCCL(SeqNum=1, OpType=ALLREDUCE, NumelIn=5, NumelOut=5, Timeout(ms)=600000) ran"
        " for 600001 milliseconds before timing out.\n"
    )
    assert_cause(text, "stale-config", {"b"})
