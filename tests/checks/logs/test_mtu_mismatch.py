"""NC933 mtu-mismatch: lines of several versions, launchers and wordings mean it."""

from __future__ import annotations

from tests.checks.logs.explaining import assert_cause


def test_differ() -> None:
    text = (
        "[m1] 2: eth0: <BROADCAST,UP> mtu 9000 qdisc mq\n"
        "[m2] 2: eth0: <BROADCAST,UP> mtu 1500 qdisc mq\n"
        "[m1] [rank0]: RuntimeError: [gloo/transport/tcp/unbound_buffer.cc:84] Timed out waiting 1800000"
        "ms for recv operation to complete\n"
    )
    assert_cause(text, "mtu-mismatch")


def test_too_long() -> None:
    text = "[rank0]: OSError: [Errno 90] Message too long\n"
    assert_cause(text, "mtu-mismatch")
