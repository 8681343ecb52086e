"""NC908 loopback-interface: lines of several versions, launchers and wordings mean it."""

from __future__ import annotations

from tests.checks.logs.explaining import assert_cause


def test_nccl_took_lo() -> None:
    text = (
        "[default0]:r1:1:1 [0] NCCL INFO NCCL_SOCKET_IFNAME set by environment to ^docker0,virbr0\n"
        "[default0]:r1:1:1 [0] NCCL INFO Bootstrap : Using lo:127.0.0.1<0>\n"
        "[default0]:r2:2:2 [0] NCCL INFO Bootstrap : Using lo:127.0.0.1<0>\n"
        "[default0]:r2:2:3 [0] misc/socket.cc:484 NCCL WARN socketStartConnect: Connect to 127.0.0.1<345"
        "67> failed : Connection refused\n"
    )
    assert_cause(text, "loopback-interface", {"r1", "r2"})


def test_gloo_falls_back() -> None:
    text = (
        "nodeB: [W ProcessGroupGloo.cpp:724] Warning: Unable to resolve hostname to a (local) address. U"
        "sing the loopback address as fallback. Manually set the network interface to bind to with GLOO_"
        "SOCKET_IFNAME. (function operator())\n"
        "nodeB: RuntimeError: [gloo/transport/tcp/pair.cc:799] connect [127.0.1.1]:17482: Connection ref"
        "used\n"
    )
    assert_cause(text, "loopback-interface", {"nodeB"})
