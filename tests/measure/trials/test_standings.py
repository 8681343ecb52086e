"""Where the arms of a race stand."""

from __future__ import annotations

from ncclcheck.measure.trials.race import Rules
from ncclcheck.measure.trials.standings import TWIN, Standings


def played(figures: dict[int, float], rounds: int) -> Standings:
    standings = Standings(Rules(3, 1), 2)
    for number in range(rounds):
        shift = 0.001 * ((number * 7) % 5 - 2)
        standings.add(
            {arm: (figure + shift,) for arm, figure in figures.items() if arm in standings.measured}
        )
        if standings.is_over:
            break
    return standings


def test_who_wins_stays_until_the_others_are_decided() -> None:
    standings = played({TWIN: 0.0, 0: 0.1, 1: 0.2}, 40)
    assert standings.is_over
    assert standings.best == 1
    assert standings.better_at(1) == [0]


def test_who_won_at_a_look_is_measured_no_more_and_its_proof_stays() -> None:
    standings = Standings(Rules(3, 1), 2)
    first = standings.rules.looks[0]
    for number in range(first + 2):
        figures = {TWIN: 0.001 * (-1) ** number, 0: 0.05 + 0.001 * (number % 3), 1: 0.08 * (-1) ** number}
        standings.add({arm: (figures[arm],) for arm in standings.measured})
    assert standings.standing[0] == "candidate"
    assert standings.measured == (TWIN, 1)
    assert len(standings.figures[0]) == first
    assert standings.better_at(standings.best or 0) == [0]


def test_an_arm_that_failed_is_neither_measured_nor_the_best() -> None:
    standings = played({TWIN: 0.0, 0: 0.1, 1: 0.0}, 5)
    standings.leave(0)
    assert standings.measured == (TWIN, 1)
    assert standings.best is None


def test_a_twin_that_differs_ends_it() -> None:
    standings = played({TWIN: 0.05, 0: 0.1, 1: 0.1}, 40)
    assert standings.twin_differs
    assert standings.is_over
