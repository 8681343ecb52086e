"""NC943 nccl-or-driver-bug: lines of several versions, launchers and wordings mean it."""

from __future__ import annotations

from tests.checks.logs.explaining import assert_cause


def test_roce_version() -> None:
    text = (
        "e:1:9 [0] transport/net_ib.cc:330 NCCL WARN NET/IB: read failed in ncclIbRoceGetVersionNum: Inv"
        "alid argument\n"
        "e:1:9 [0] NCCL INFO transport/net_ib.cc:398 -> 2\n"
    )
    assert_cause(text, "nccl-or-driver-bug")
