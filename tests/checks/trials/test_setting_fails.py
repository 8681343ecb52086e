"""setting-fails of bench --try."""

from __future__ import annotations

from msgspec.structs import replace

from tests.bench_builders import with_bench
from tests.builders import cluster
from tests.checks.running import finding, run
from tests.trial_builders import HANGS, SAME, with_trials


def test_settings_without_it_pass_and_without_trials_it_does_not_apply() -> None:
    assert run("setting-fails", with_trials(SAME)).outcome == "passed"
    assert run("setting-fails", with_bench(cluster(2))).outcome == "not_applicable"
    assert run("setting-fails", with_trials(SAME, broken_after=0)).outcome == "unknown"


def test_the_setting_is_named_with_what_it_did() -> None:
    snapshot = with_trials(HANGS, SAME)
    found = finding("setting-fails", snapshot)
    assert found.summary.startswith("GLOO_SOCKET_IFNAME=")
    assert "fails" in found.summary
    assert run("setting-fails", replace(snapshot)).outcome == "found"
