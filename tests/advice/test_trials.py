"""The setting that won the trials, as advice in every format."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ncclcheck.advice.block import advise
from ncclcheck.advice.environment_block import Format, render
from ncclcheck.advice.trials import with_trials as advice_with_trials
from ncclcheck.model.bench import BenchResult
from ncclcheck.model.report import Advice, Setting
from ncclcheck.model.snapshot import Snapshot
from tests.trial_builders import FAST, HANGS, SAME, TRADE, with_trials


def test_the_winner_is_advised_as_measured_with_its_ratios() -> None:
    (setting,) = [setting for setting in advise(with_trials(SAME, FAST)).env if setting.value == "fast"]
    assert (setting.name, setting.hosts, setting.proof) == ("GLOO_SOCKET_IFNAME", (), "measured")
    assert "all_reduce 1M 1." in setting.evidence
    assert "measured again" in setting.evidence


@pytest.mark.parametrize("arm", [SAME, TRADE, HANGS])
def test_no_other_outcome_is_advice(arm: dict[str, str]) -> None:
    assert not [
        setting for setting in advise(with_trials(arm)).env if setting.value == arm["GLOO_SOCKET_IFNAME"]
    ]


def test_it_takes_the_place_of_other_advice_for_the_same_variable() -> None:
    before = Advice((Setting("GLOO_SOCKET_IFNAME", "eth0", (), "reach", "asked", "it chose eth0"),))
    after = advice_with_trials(before, with_trials(FAST))
    assert [setting.value for setting in after.env] == ["fast"]


def as_nccl(snapshot: Snapshot) -> Snapshot:
    bench = snapshot.bench
    assert isinstance(bench, BenchResult)
    assert bench.trials is not None
    trials = tuple(
        replace(trial, arm={"NCCL_ALGO": "Tree"}) if trial.arm else trial for trial in bench.trials
    )
    return replace(snapshot, bench=replace(bench, trials=trials))


def test_what_the_manual_does_not_want_to_be_kept_comes_with_its_warning() -> None:
    advice = advice_with_trials(Advice(), as_nccl(with_trials(FAST)))
    assert "lists NCCL_ALGO under Debugging" in advice.notes[0]
    assert advice_with_trials(Advice(), with_trials(FAST)).notes == ()


@pytest.mark.parametrize("format_", ["sh", "docker", "slurm", "k8s", "json"])
def test_every_format_of_env_has_it(format_: Format) -> None:
    text = render(advise(with_trials(FAST)), format_)
    assert "GLOO_SOCKET_IFNAME" in text
    assert "fast" in text
