"""NC932 ib-hca-selection: lines of several versions, launchers and wordings mean it."""

from __future__ import annotations

from tests.checks.logs.explaining import assert_cause


def test_incompatible() -> None:
    text = (
        "0: a:1:2 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB eth0:10.0.0.1<0>\n"
        "0: a:1:2 [0] NCCL INFO Using network IB\n"
        "0: a:1:2 [0] NCCL INFO comm 0x1 rank 0 nranks 2 cudaDev 0 busId 1 commId 0x2 - Init START\n"
        "1: b:1:2 [0] NCCL INFO NET/IB : Using [0]mlx5_4:1/RoCE [RO]; OOB eth0:10.0.0.2<0>\n"
        "1: b:1:2 [0] NCCL INFO Using network IB\n"
        "1: b:1:9 [0] transport/net_ib.cc:1100 NCCL WARN NET/IB : Attempted to merge incompatible device"
        "s\n"
    )
    assert_cause(text, "ib-hca-selection", {"b"})


def test_one_node_has_none() -> None:
    text = (
        "0: a:1:2 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.1<0>\n"
        "0: a:1:2 [0] NCCL INFO Using network IB\n"
        "1: b:1:2 [0] NCCL INFO NET/IB : No device found.\n"
        "1: b:1:2 [0] NCCL INFO Using network Socket\n"
        "0: [rank0]: torch.distributed.DistBackendError: NCCL error in: x.cpp:1, internal error - please"
        " report this issue to the NCCL developers, NCCL version 2.20.5\n"
    )
    assert_cause(text, "ib-hca-selection", {"b"})
