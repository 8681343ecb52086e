"""Rounds of pairs: nobody twice in a round, every pair in both directions, everybody with enough partners."""

from __future__ import annotations

import pytest

from ncclcheck.measure.links.pairing import PARTNERS, rounds_of_pairs


@pytest.mark.parametrize("members", [2, 3, 4, 5, 6, 7, 8, 16, 33, 100])
def test_rounds(members: int) -> None:
    rounds = rounds_of_pairs(members)
    partners: dict[int, set[int]] = {}
    for pairs in rounds:
        taken = [member for pair in pairs for member in pair]
        assert len(set(taken)) == len(taken)
        for one, other in pairs:
            partners.setdefault(one, set()).add(other)
    assert set(partners) == set(range(members))
    everything = {pair for pairs in rounds for pair in pairs}
    assert everything == {(other, one) for one, other in everything}
    fewest = min(PARTNERS, members - 1) - members % 2 * (members > PARTNERS)
    assert min(map(len, partners.values())) >= fewest
    assert len(rounds) <= 2 * PARTNERS


def test_all_pairs_of_a_few_nodes_are_tried() -> None:
    for members in (2, 3, 4):
        assert len({pair for pairs in rounds_of_pairs(members) for pair in pairs}) == members * (members - 1)


def test_one_member_has_nobody_to_meet() -> None:
    assert [pair for pairs in rounds_of_pairs(1) for pair in pairs] == []
