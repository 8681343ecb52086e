"""NC914 ib-link-or-fabric: lines of several versions, launchers and wordings mean it."""

from __future__ import annotations

from tests.checks.logs.explaining import assert_cause


def test_a_port_went_down() -> None:
    text = (
        "12: c7:7:70 [4] transport/net_ib.cc:96 NCCL WARN NET/IB : mlx5_4:1 Got async event : port error\n"
        "2: c1:1:10 [2] transport/net_ib.cc:1200 NCCL WARN NET/IB : Got completion from peer 10.0.0.7<12"
        "34> with error 12, opcode 0, len 0, vendor err 129\n"
    )
    assert_cause(text, "ib-link-or-fabric", {"c7", "rank 12"})


def test_retries_used_up() -> None:
    text = (
        "k1:1:2 [0] NCCL INFO Bootstrap : Using ib0:10.0.0.1<0>\n"
        "k2:1:2 [0] NCCL INFO Bootstrap : Using ib0:10.0.0.2<0>\n"
        "k1:1:9 [0] transport/net_ib.cc:1295 NCCL WARN NET/IB : Got completion from peer 10.0.0.2<40022>"
        " with status=12 opcode=32632 len=0 vendor err 129 (Recv)\n"
    )
    assert_cause(text, "ib-link-or-fabric", {"k2"})
