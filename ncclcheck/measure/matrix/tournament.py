"""Rounds in which all pairs of nodes meet once: the circle method of a round-robin tournament."""

from __future__ import annotations

from collections.abc import Sequence

from ncclcheck.measure.isolation.pair_tests import Pair


def tournament_rounds(members: int) -> int:
    """Return how many rounds all pairs take: one fewer than members, and as many where their number is odd."""
    return 0 if members < 2 else members - 1 + members % 2  # noqa: PLR2004 (a pair)


def tournament_round(order: Sequence[int], number: int) -> tuple[Pair, ...]:
    """Return the disjoint pairs of round `number`, from 0; in each the member that is first in `order` comes first.

    So in either half of a round data crosses the network from the front of the order to its end, or back: that loads
    trunks, which random directions would not. Of an odd number of members one has no partner.
    """
    places = [*range(len(order)), *([-1] if len(order) % 2 else [])]
    turn = number % max(1, len(places) - 1)
    circle = [*places[:1], *places[1 + turn :], *places[1 : 1 + turn]]
    half = len(circle) // 2
    couples = zip(circle[:half], reversed(circle[half:]), strict=True)
    return tuple((order[min(couple)], order[max(couple)]) for couple in couples if -1 not in couple)
