"""The statistics that a card keeps itself, asked of the interfaces of this machine."""

from __future__ import annotations

import socket

from ncclcheck.facts.network.card_statistics import card_statistics


def test_every_interface_answers_or_says_that_it_has_none() -> None:
    for _, name in socket.if_nameindex():
        counts = card_statistics(name)
        assert all(name and count >= 0 for name, count in counts.items())


def test_an_interface_that_is_not_there_has_none() -> None:
    assert card_statistics("nope0") == {}
    assert card_statistics("lo") == {}
