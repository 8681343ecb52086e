"""Pairs of senders and receivers: every node with a few others, one direction at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

Pair: TypeAlias = tuple[int, int]  # from, to
PARTNERS = 3  # of each node, where there are so many


def rounds_of_pairs(members: int, partners: int = PARTNERS) -> tuple[tuple[Pair, ...], ...]:
    """Return rounds of pairs (from, to) with each member at most once per round; each pair comes in both directions.

    The rounds of a round-robin tournament (the circle method: one stays, the others go round), evenly spaced ones, so
    each member meets `partners` others (one fewer where their number is odd and it sits out a round). A transfer never
    shares an interface with another, nor with data of the other direction.
    """
    turns = turns_of(members)
    chosen = sorted({number * turns // partners for number in range(min(partners, turns))})
    rounds: list[tuple[Pair, ...]] = []
    for turn in chosen:
        pairs = pairs_of_turn(members, turn)
        rounds += [pairs, tuple((right, left) for left, right in pairs)]
    return tuple(rounds)


def turns_of(members: int) -> int:
    """Return how many turns it takes until every member was paired with every other one."""
    return members - 1 + members % 2


def pairs_of_turn(members: int, turn: int) -> tuple[Pair, ...]:
    """Return the pairs of that turn of the tournament, each member at most once."""
    places = [*range(members), *([-1] if members % 2 else [])]
    circle = [places[0], *_turned(places[1:], turn)]
    half = len(circle) // 2
    return tuple(
        (left, right)
        for left, right in zip(circle[:half], reversed(circle[half:]), strict=True)
        if -1 not in (left, right)
    )


def _turned(places: Sequence[int], turn: int) -> list[int]:
    return [*places[turn:], *places[:turn]]
