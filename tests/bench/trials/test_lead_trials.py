"""Trials of settings as node 0 leads them, over stand-ins of the nodes."""

from __future__ import annotations

import sys

import pytest
from msgspec.structs import replace

from ncclcheck.bench.trials.lead_trials import lead_trials
from ncclcheck.bench.trials.trial_set import TrialSet
from ncclcheck.model.bench import BenchPlan, BenchResult
from ncclcheck.model.fact import Missing
from tests.trial_builders import (
    FAST,
    FASTEST,
    HANGS,
    REFUSED,
    SAME,
    SIZES,
    TRADE,
    WRONG,
    Nodes,
    led,
    tried,
)


def outcomes(result: BenchResult) -> dict[str, str]:
    assert result.trials is not None
    return {trial.name.partition("=")[2] or trial.name: trial.outcome for trial in result.trials}


def test_the_fast_setting_is_advised_the_others_are_not() -> None:
    result = tried(SAME, FAST, TRADE)
    assert outcomes(result) == {
        "as-is": "reference",
        "as-is again (twin)": "reference",
        "same": "no gain",
        "fast": "advised",
        "trade": "refused",
    }
    assert result.race is not None
    assert result.race.ended == "decided"
    assert result.race.confirming_rounds >= 5
    assert result.trials is not None
    fast = result.trials[3]
    assert [effect.effect for effect in fast.per_size] == ["better", "better"]
    assert all(effect.low < 1.1 < effect.high for effect in fast.per_size if effect.low and effect.high)
    assert len(fast.confirmed) == 2
    assert fast.uses == ("interface fast",)
    assert "slower at all_reduce 16M (-" in result.trials[4].reason


def test_as_is_and_its_twin_are_in_every_round_in_random_order_and_no_name_comes_twice() -> None:
    nodes = Nodes()
    result = led(nodes, FAST)
    assert isinstance(result, BenchResult)
    assert result.race is not None
    rounds = result.race.rounds
    arms = [trial.network.environment_of["node01"]["GLOO_SOCKET_IFNAME"] for trial in nodes.ordered]
    in_rounds = [arms[3 * number : 3 * number + 3] for number in range(rounds)]
    assert all(sorted(filter(None, row)) == ["eth0", "eth0", "fast"] for row in in_rounds)
    assert len({tuple(row) for row in in_rounds}) > 1
    assert len({trial.name for trial in nodes.ordered}) == len(nodes.ordered) == result.race.sets
    assert all(trial.is_trial for trial in nodes.ordered)


def test_nothing_to_gain_is_an_end_of_its_own() -> None:
    result = tried(SAME)
    assert result.race is not None
    assert result.race.ended == "nothing to gain"
    assert outcomes(result)["same"] == "no gain"


def test_a_setting_that_hangs_costs_one_set_and_is_named() -> None:
    nodes = Nodes()
    said: list[str] = []
    result = led(nodes, HANGS, FAST, say=said.append)
    assert isinstance(result, BenchResult)
    assert outcomes(result)["hangs"] == "failed"
    assert outcomes(result)["fast"] == "advised"
    assert (
        sum(
            trial.network.environment_of["node01"]["GLOO_SOCKET_IFNAME"] == "hangs" for trial in nodes.ordered
        )
        == 1
    )
    assert result.trials is not None
    assert result.trials[2].hosts == ("node02",)
    assert result.failures == ()  # as-is is sound
    assert any("hung in all_reduce 1M" in line for line in said)


def test_a_setting_with_wrong_data_is_named() -> None:
    result = tried(WRONG)
    assert outcomes(result)["wrong"] == "wrong data"
    assert result.trials is not None
    assert "7 wrong elements" in result.trials[2].reason


@pytest.mark.parametrize("broken_after", [0, 4])
def test_where_as_is_fails_no_setting_is_blamed(broken_after: int) -> None:
    result = tried(SAME, broken_after=broken_after)
    assert result.race is not None
    assert result.race.ended == "as-is failed"
    assert outcomes(result)["same"] == "undecided"
    assert bool(result.failures) is (broken_after == 0)


def test_the_budget_ends_it() -> None:
    result = tried(FAST, noise=0.3)
    assert result.race is not None
    assert result.race.ended == "undecided"
    nodes = Nodes()
    ended = led(nodes, FAST, left_s=0.0)
    assert isinstance(ended, Missing)
    assert nodes.ordered == []


def test_what_is_there_is_kept_where_it_is_interrupted() -> None:
    kept: list[BenchResult] = []
    with pytest.raises(KeyboardInterrupt):
        led(Nodes(interrupted_after=7), FAST, keep=kept.append)
    (result,) = kept
    assert result.race is not None
    assert (result.race.ended, result.race.rounds) == ("interrupted", 2)


def test_what_the_backend_does_not_read_is_refused() -> None:
    found = led(Nodes(), {"NCCL_ALGO": "Tree"})
    assert isinstance(found, Missing)
    assert "Gloo, which runs here, does not read NCCL_ALGO" in found.detail


def test_a_plan_that_is_not_finished_says_nothing_of_a_setting() -> None:
    plan = BenchPlan("gloo", ("all_reduce",), (*SIZES, 1 << 25), "float32", 5, None, 20.0, True)
    found = led(Nodes(), FAST, plan=plan)
    assert isinstance(found, BenchResult)
    assert found.race is not None
    assert found.race.ended == "budget"
    assert replace(found, trials=None, race=None).points


def test_a_setting_that_failed_stays_failed_where_no_time_is_left_to_measure_as_is_again() -> None:
    result = led(Nodes(hang_s=0.4), HANGS, budget_s=0.3)
    assert isinstance(result, BenchResult)
    assert result.trials is not None
    assert result.race is not None
    assert (result.trials[2].outcome, result.race.ended) == ("failed", "budget")
    assert result.trials[2].hosts == ("node02",)
    assert "as-is was not measured again after it" in result.trials[2].reason


def test_a_setting_that_failed_stays_failed_where_it_is_interrupted_right_after() -> None:
    kept: list[BenchResult] = []
    hangs_at = tuple(trial.name for trial in _until_the_hang())
    with pytest.raises(KeyboardInterrupt):
        led(Nodes(interrupted_after=len(hangs_at)), HANGS, keep=kept.append)
    assert outcomes(kept[0])["hangs"] == "failed"


def _until_the_hang() -> list[TrialSet]:
    nodes = Nodes()
    led(nodes, HANGS)
    names = [trial.network.environment_of["node01"]["GLOO_SOCKET_IFNAME"] for trial in nodes.ordered]
    return nodes.ordered[: names.index("hangs") + 1]


def test_one_hang_does_not_take_the_budget_of_the_other_settings() -> None:
    """A set takes no time here, and the hang more than half of what is left: the others still fit."""
    result = led(Nodes(hang_s=1.2), HANGS, FAST, budget_s=2.9)
    assert isinstance(result, BenchResult)
    assert outcomes(result) | {"fast": "advised", "hangs": "failed"} == outcomes(result)


def test_a_set_for_which_the_run_had_no_time_left_blames_nobody() -> None:
    result = tried(FAST, late_after=4)
    assert result.race is not None
    assert result.race.ended == "budget"
    assert outcomes(result)["fast"] == "undecided"


def test_a_confirmation_that_was_cut_is_undecided_and_not_unconfirmed() -> None:
    whole = tried(FAST)
    assert whole.race is not None
    result = tried(FAST, late_after=whole.race.sets - 2 * whole.race.confirming_rounds + 6)
    assert result.trials is not None
    assert result.race is not None
    assert result.race.confirming_rounds == 3
    assert result.trials[2].outcome == "undecided"
    assert "the trials ended before it was confirmed" in result.trials[2].reason
    result = tried(FAST, late_after=whole.race.sets - 2 * whole.race.confirming_rounds)
    assert result.trials is not None
    assert "the trials ended before it was confirmed" in result.trials[2].reason


def test_a_setting_that_another_one_beats_is_second_best() -> None:
    assert outcomes(tried(FASTEST, FAST)) | {"fastest": "advised", "fast": "second best"} == outcomes(
        tried(FASTEST, FAST)
    )


@pytest.mark.parametrize("how", ["hangs_after", "slow_after"])
def test_where_the_winner_is_not_confirmed_the_second_best_is(how: str) -> None:
    whole = Nodes()
    led(whole, FASTEST, FAST)
    proven = _measured_in_the_race(whole)
    found = outcomes(tried(FASTEST, FAST, **{how: {"fastest": proven}}))
    assert found["fastest"] == ("failed" if how == "hangs_after" else "not confirmed")
    assert found["fast"] == "advised"


def _measured_in_the_race(nodes: Nodes) -> int:
    """Return how often the fastest was measured before it was confirmed."""
    result = led(Nodes(), FASTEST, FAST)
    assert isinstance(result, BenchResult)
    assert result.race is not None
    return nodes.count("fastest") - result.race.confirming_rounds


def test_a_call_that_the_backend_refuses_takes_out_its_setting_alone() -> None:
    result = tried(REFUSED, FAST)
    assert result.trials is not None
    assert outcomes(result) | {"refused": "failed", "fast": "advised"} == outcomes(result)
    assert "not supported" in result.trials[2].reason


def test_a_call_that_is_refused_as_it_is_is_no_lack_of_time() -> None:
    result = tried(REFUSED, as_is="refused")
    assert result.race is not None
    assert result.race.ended == "as-is failed"
    assert "not supported" in result.race.words


def test_no_more_sets_are_ordered_than_a_node_takes_part_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[lead_trials.__module__], "MOST_SETS", 7)
    nodes = Nodes()
    result = led(nodes, FAST)
    assert isinstance(result, BenchResult)
    assert result.race is not None
    assert (result.race.ended, result.race.words) == ("undecided", "7 sets of processes did not decide it")
    assert len(nodes.ordered) == 7


def test_one_round_is_one_round() -> None:
    result = tried(HANGS)
    assert result.race is not None
    assert result.race.words == "decided after 1 round"
