"""The setting that won the trials, as advice in every format."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ncclcheck.advice.block import advise
from ncclcheck.advice.environment_block import Format, render
from ncclcheck.advice.trials import may_be_tried
from ncclcheck.advice.trials import with_trials as advice_with_trials
from ncclcheck.model.bench import BenchResult
from ncclcheck.model.bench_setup import BenchNetwork
from ncclcheck.model.benchmarks.trials import TryRequest
from ncclcheck.model.report import Advice, Setting
from ncclcheck.model.snapshot import Snapshot
from tests.builders import cluster, without
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


def with_environment(snapshot: Snapshot, **settings: str) -> Snapshot:
    nodes = (replace(node, facts=replace(node.facts, environment=settings)) for node in snapshot.nodes)
    return replace(snapshot, nodes=tuple(nodes))


def network(**changes: str | None) -> BenchNetwork:
    hosts = ("node01", "node02")
    return BenchNetwork("nccl", dict.fromkeys(hosts, 8), {}, dict.fromkeys(hosts, changes), "as it is")


def refusal(arm: dict[str, str], snapshot: Snapshot, runs_on: BenchNetwork) -> str:
    found = may_be_tried(TryRequest(({"NCCL_ALGO": "Ring"}, arm)), runs_on, snapshot)
    return "" if found is None else found.detail


def test_what_is_set_so_already_is_not_tried() -> None:
    snapshot = with_environment(cluster(2), NCCL_ALGO="Tree")
    told = refusal({"NCCL_ALGO": "Tree"}, snapshot, network())
    assert told == "NCCL_ALGO=Tree is not tried: it is what runs as it is on every node: leave it out"
    assert "NCCL_CROSS_NIC=1 is not tried" in refusal(
        {"NCCL_CROSS_NIC": "1"}, snapshot, network(NCCL_CROSS_NIC="1")
    )


@pytest.mark.parametrize("arm", [{"NCCL_ALGO": "Ring"}, {"NCCL_ALGO": "Tree", "NCCL_CROSS_NIC": "1"}])
def test_what_differs_in_one_setting_is_tried(arm: dict[str, str]) -> None:
    assert refusal(arm, with_environment(cluster(2), NCCL_ALGO="Tree"), network()) == ""


def test_what_is_unset_for_the_benchmark_or_not_known_on_a_node_is_tried() -> None:
    snapshot = with_environment(cluster(2), NCCL_ALGO="Tree")
    assert refusal({"NCCL_ALGO": "Tree"}, snapshot, network(NCCL_ALGO=None)) == ""
    assert refusal({"NCCL_ALGO": "Tree"}, without(snapshot, "node02", "environment"), network()) == ""


def test_without_settings_to_try_there_is_nothing_to_refuse() -> None:
    assert may_be_tried(None, network(), cluster(2)) is None
