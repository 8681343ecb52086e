"""NC935 gdr-unavailable: lines of several versions, launchers and wordings mean it."""

from __future__ import annotations

from tests.checks.logs.explaining import assert_cause


def test_peermem() -> None:
    text = (
        "[g1] modprobe: FATAL: Module nvidia_peermem not found in directory /lib/modules/6.8\n"
        "[g1] g1:1:2 [0] misc/ibvwrap.cc:166 NCCL WARN Call to ibv_reg_mr failed with error Bad address\n"
    )
    assert_cause(text, "gdr-unavailable")
