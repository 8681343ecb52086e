"""NC942 port-scanner: lines of several versions, launchers and wordings mean it."""

from __future__ import annotations

from tests.checks.logs.explaining import assert_cause


def test_http() -> None:
    text = (
        "p1:1:9 [0] misc/socket.cc:432 NCCL WARN socketFinalizeAccept: wrong magic 5448202f20544547 != 4"
        "63b7e27c059f204\n"
    )
    assert_cause(text, "port-scanner")
