"""NC911 routing-asymmetric: lines of several versions, launchers and wordings mean it."""

from __future__ import annotations

from tests.checks.logs.explaining import assert_cause


def test_two_cards_in_one_subnet() -> None:
    text = (
        "[b2] 192.168.0.0/24 dev eno2 proto kernel scope link src 192.168.0.12 metric 100\n"
        "[b2] 192.168.0.0/24 dev eno1 proto kernel scope link src 192.168.0.2 metric 101\n"
        "[b1] b1:1:9 [0] misc/socket.cc:521 NCCL WARN socketPollConnect: connect to 192.168.0.2<45511> r"
        "eturned Connection timed out, exceeded error retry count after 35 attempts\n"
    )
    assert_cause(text, "routing-asymmetric", {"b2"})
