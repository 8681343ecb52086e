"""What is counted of strangers: bounded, and harmless to show."""

from __future__ import annotations

from ncclcheck.exchange.trust.run_key import new_key
from ncclcheck.exchange.trust.trust import MOST_ORIGINS, Trust
from ncclcheck.model.authentication import Authentication, Foreign


def test_messages_are_counted_by_origin_and_cause() -> None:
    trust = Trust(new_key("munge"))
    for _ in range(3):
        trust.drop("::ffff:10.0.0.9", "no-key")
    trust.drop("10.0.0.9", "other-key", "node2\x1b[31m", 1)
    trust.drop("10.0.0.9", "other-key", "another", 2)
    assert trust.authentication() == Authentication(
        "munge", (Foreign("10.0.0.9", "no-key", 3), Foreign("10.0.0.9", "other-key", 2, "node2[31m", 1))
    )


def test_many_origins_take_no_more_room() -> None:
    trust = Trust()
    for number in range(1000):
        trust.drop(f"fe80::{number:x}%eth0", "no-key")
    told = trust.authentication()
    assert (told.by, len(told.foreign), told.further) == ("", MOST_ORIGINS, 1000 - MOST_ORIGINS)
