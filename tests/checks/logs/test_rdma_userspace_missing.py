"""NC934 rdma-userspace-missing: lines of several versions, launchers and wordings mean it."""

from __future__ import annotations

from tests.checks.logs.explaining import assert_cause


def test_no_library() -> None:
    text = (
        "[d1] d1:1:2 [0] NCCL INFO Failed to open libibverbs.so[.1]\n"
        "[d1] d1:1:2 [0] NCCL INFO Using network Socket\n"
        "[d1] mlx5_0 port 1 state: Active, Link layer: InfiniBand\n"
        "[d1] [rank0]:[E1 00:00:00.1 ProcessGroupNCCL.cpp:616] [Rank 0] Watchdog caught collective opera"
        "tion timeout: WorkNCCL(SeqNum=9, OpType=ALLREDUCE, NumelIn=5, NumelOut=5, Timeout(ms)=600000) r"
        "an for 600001 milliseconds before timing out.\n"
    )
    assert_cause(text, "rdma-userspace-missing")
