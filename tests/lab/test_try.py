"""bench --try on real nodes: the interface that is faster wins, and one that hangs is named."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.lab.launched import run
from tests.lab.nodes import Lab
from tests.lab.try_cases import SIZES, TRADE_SIZES, WORDS, arms, build, build_trade

LabOf = Callable[..., Lab]
pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.alone, pytest.mark.further]


def test_the_faster_interface_is_advised_and_the_one_that_hangs_is_named(lab: LabOf) -> None:
    two = lab(2)
    build(two, 0.3)  # plain to see on busy cores; scripts/tries has the 10 %
    outcome = run(two, *WORDS, *SIZES, *arms("eth2", "eth1"))["node1"]
    assert outcome.report is not None, str(outcome.finished)
    bench = outcome.report["bench"]
    found = {trial["arm"].get("GLOO_SOCKET_IFNAME", trial["role"]): trial for trial in bench["trials"]}
    assert found["eth2"]["outcome"] == "failed", str(outcome.finished)
    assert found["eth1"]["outcome"] == "advised", str(outcome.finished)
    assert found["eth1"]["uses"] == ["interface eth1"]
    assert found["eth1"]["per_size"][0]["effect"] == "better"
    assert outcome.code == 4
    assert "eth2" in outcome.finding("setting-fails")["summary"]
    assert [setting["value"] for setting in outcome.report["advice"]["env"]] == ["eth1"]
    assert two.leftovers() == ()


def test_what_wins_at_a_small_size_and_loses_at_a_large_one_is_refused(lab: LabOf) -> None:
    two = lab(2)
    build_trade(two)
    outcome = run(two, *WORDS, *TRADE_SIZES, *arms("eth1"))["node1"]
    assert outcome.report is not None, str(outcome.finished)
    (trial,) = (trial for trial in outcome.report["bench"]["trials"] if trial["role"] == "arm")
    assert trial["outcome"] == "refused", str(outcome.finished)
    assert [size["effect"] for size in trial["per_size"]] == ["better", "worse"]
    assert "eth1" in outcome.finding("setting-trade")["summary"]
    assert outcome.report["advice"]["env"] == []
