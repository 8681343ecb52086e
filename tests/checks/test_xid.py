"""Xid errors by what they ask for."""

from __future__ import annotations

import pytest

from ncclcheck.checks.xid import sxid_demand, xid_demand


@pytest.mark.parametrize(
    ("number", "demand"),
    [(13, "application"), (31, "application"), (94, "application"), (43, "nothing"), (63, "nothing"), (45, "nothing"),
     (48, "reset"), (64, "reset"), (74, "reset"), (95, "reset"), (119, "reset"), (149, "reset"), (79, "reboot"),
     (54, "look"), (1, None), (9999, None)],
)  # fmt: skip
def test_the_demand_of_a_number(number: int, demand: str | None) -> None:
    assert xid_demand(number, "") == demand


@pytest.mark.parametrize(
    ("text", "demand"),
    [
        ("GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)", "reboot"),
        ("GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)", "reset"),
        ("GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)", "nothing"),
        ("GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)", "reset"),
        ("GPU recovery action changed to something new", None),
    ],
)
def test_a_changed_recovery_action_says_what_is_to_do(text: str, demand: str | None) -> None:
    assert xid_demand(154, text) == demand


@pytest.mark.parametrize(
    ("number", "words", "demand"),
    [
        (24007, "Fatal, Link 12 sourcetrack timeout error", "reset"),
        (20001, "Non-fatal, Link 12 TX Replay Error", "nothing"),
        (11012, "Non-fatal, Link 12 single bit ECC", "nothing"),
        (29999, "Link 12 of a kind that nobody has seen", None),
        (11004, "Non-fatal, Link 36 ingress invalid ACL (First)", "reboot"),
        (12028, "Non-fatal, Link 32 egress non-posted PRIV error (First)", "reboot"),
        (12028, "Fatal, Link 32 egress non-posted PRIV error (First)", "reset"),
        (19084, "Non-fatal, Link 1 AN1 Heartbeat Timeout Error", "reset"),
        (20012, "Non-fatal, Link 1", "look"),
        (10003, "Host_unhandled_interrupt", "reset"),
        (10004, "Host_thermal_event_start", "look"),
        (99999, "Non-fatal, something of tomorrow", "nothing"),
        (99999, "Fatal, something of tomorrow", "reset"),
    ],
)
def test_the_demand_of_a_switch_error(number: int, words: str, demand: str) -> None:
    assert sxid_demand(number, f"nvidia-nvswitch0: SXid (PCI:0000:c4:00.0): {number}, {words}") == demand
