"""How demands are written in a sentence, and when a rule is over."""

from __future__ import annotations

import pytest

from ncclcheck.model.policy.expected import Expected, Number, PolicyRule, Presence, Subnet, Text


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (Number(400.0, "Gbit/s", at_least=True), "at least 400 Gbit/s"),
        (Number(None, "KiB", at_least=True), "unlimited"),
        (Number(16 << 20, "KiB", at_least=True), "at least 16 GiB"),
        (Number(8192, "KiB"), "8 MiB"),
        (Number(0.5, "KiB"), "0.5 KiB"),
        (Number(9000), "9000"),
        (Text(("a", "b")), "a or b"),
        (Subnet(("10.0.0.0/8",)), "an address in 10.0.0.0/8"),
        (Presence(False), "not set"),
    ],
)
def test_a_demand_is_written_for_people(wanted: object, words: str) -> None:
    assert str(wanted) == words


@pytest.mark.parametrize(
    ("until", "on", "over"),
    [
        ("2026-12-31", "2026-12-31", False),
        ("2026-12-31", "2027-01-01", True),
        ("", "2027-01-01", False),
        ("2026-12-31", "", False),
    ],
)
def test_a_rule_counts_through_its_last_day(until: str, on: str, over: bool) -> None:
    assert Expected(on=on).is_over(PolicyRule("ignore", "NC2", "site.toml", "", until)) is over
