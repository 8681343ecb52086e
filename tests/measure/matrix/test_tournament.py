"""All pairs meet once, in rounds of disjoint pairs."""

from __future__ import annotations

import pytest

from ncclcheck.measure.matrix.tournament import tournament_round, tournament_rounds


@pytest.mark.parametrize("members", [2, 3, 4, 5, 8, 15, 16, 33])
def test_every_pair_meets_once_and_nobody_twice_in_a_round(members: int) -> None:
    order = [10 * number for number in range(members)]
    rounds = [tournament_round(order, number) for number in range(tournament_rounds(members))]
    for pairs in rounds:
        ends = [end for pair in pairs for end in pair]
        assert len(ends) == len(set(ends)) == members - members % 2
        assert all(first < second for first, second in pairs)
    met = [pair for pairs in rounds for pair in pairs]
    assert len(met) == len(set(met)) == members * (members - 1) // 2


def test_fewer_than_two_have_no_round() -> None:
    assert tournament_rounds(1) == tournament_rounds(0) == 0
    assert tournament_round([1], 0) == ()
