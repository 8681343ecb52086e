"""NC910 container-network: lines of several versions, launchers and wordings mean it."""

from __future__ import annotations

from tests.checks.logs.explaining import assert_cause


def test_default_bridge() -> None:
    text = (
        "3f2a9c0d1e5b:20:20 [0] NCCL INFO Bootstrap : Using eth0:172.17.0.3<0>\n"
        "9b8c7d6e5f40:30:30 [0] NCCL INFO Bootstrap : Using eth0:172.17.0.3<0>\n"
        "9b8c7d6e5f40:30:33 [0] misc/socket.cc:610 NCCL WARN socketPollConnect: connect to 172.17.0.3<43"
        "210> returned Connection refused, exceeded error retry count after 35 attempts\n"
    )
    assert_cause(text, "container-network")


def test_no_interface_at_all() -> None:
    text = "box:8:8 [0] bootstrap.cc:110 NCCL WARN Bootstrap : no socket interface found\n"
    assert_cause(text, "container-network")
