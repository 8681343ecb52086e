"""Where the arms of a race stand."""

from __future__ import annotations

from ncclcheck.measure.trials.outcome import AS_IS, ArmRecord, trials_of
from ncclcheck.measure.trials.race import Rules
from ncclcheck.measure.trials.standings import TWIN, Standings
from ncclcheck.model.bench import BenchPlan
from ncclcheck.model.benchmarks.trials import TryRequest


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


def with_one_beaten() -> Standings:
    """One arm with 30 % at the first look, and one of about 5 % that scatters too much to be decided."""
    standings = Standings(Rules(3, 1), 2)
    for number in range(standings.rules.looks[0]):
        shift = 0.001 * ((number * 7) % 5 - 2)
        standings.add({TWIN: (shift,), 0: (0.3 + shift,), 1: (0.05 + 0.08 * (-1) ** number + shift,)})
    return standings


def test_who_is_slower_than_the_best_is_beaten_and_races_again_where_the_best_leaves() -> None:
    standings = with_one_beaten()
    assert standings.standing == {0: "candidate", 1: "beaten"}
    assert standings.is_over
    standings.leave(0)
    assert standings.standing[1] == "racing"
    assert standings.measured == (TWIN, 1)
    assert not standings.is_over


def test_who_is_beaten_is_no_proof_of_no_gain() -> None:
    standings, plan = (
        with_one_beaten(),
        BenchPlan("gloo", ("all_reduce",), (1 << 20,), "float32", 5, None, 9.0, True),
    )
    request = TryRequest(({"NCCL_ALGO": "Tree"}, {"NCCL_ALGO": "Ring"}))
    told = {arm: ArmRecord() for arm in (AS_IS, TWIN, 0, 1)}
    again = tuple((0.3 + 0.001 * number,) for number in range(5))
    best, beaten = trials_of(plan, request, standings, told, {0: again})[2:]
    assert (best.outcome, beaten.outcome) == ("advised", "undecided")
    assert "whether it gains is not decided" in beaten.reason
    best, beaten = trials_of(plan, request, standings, told, {0: again[:3]})[2:]
    assert (best.outcome, beaten.outcome) == ("undecided", "undecided")
    assert "which was not confirmed" in beaten.reason
