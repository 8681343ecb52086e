"""Shared folders, data and clocks of real nodes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.lab.launched import run
from tests.lab.nodes import Lab

pytestmark = [pytest.mark.lab, pytest.mark.slow]
LabOf = Callable[..., Lab]


@pytest.mark.further
def test_a_folder_that_all_share_is_told_from_those_that_only_have_one_name(lab: LabOf) -> None:
    two = lab(2)
    common = two.folder / "common"
    common.mkdir()
    (common / "checkpoint").write_text("1")
    for node in two.nodes:
        (node.folder / "home" / "own").mkdir()
        (node.folder / "home" / "train").mkdir()
        (node.folder / "home" / "train" / f"shard-{node.rank}").write_text("x")
    options = ("--shared-dir", str(common), "--shared-dir", "own", "--data", "train", "--data", "nowhere")
    first = run(two, "preflight", *options)["node1"]

    (apart,) = first.findings("path-not-shared")
    assert apart["hosts"] == ["node1", "node2"]
    assert apart["summary"].startswith("--shared-dir own is not shared")
    assert first.report is not None
    differs = first.finding("path-differs")
    assert "shard-0" in differs["summary"]
    assert "shard-1" in differs["summary"]
    assert first.finding("path-missing")["hosts"] == ["node1", "node2"]
    assert first.code == 1

    assert [path.name for path in common.iterdir()] == ["checkpoint"]
    assert [list((node.folder / "home" / "own").iterdir()) for node in two.nodes] == [[], []]
    clocks = [probe for probe in first.report["probes"] if probe["kind"] == "clock"]
    assert {clock["outcome"] for clock in clocks} == {"ok"}
    for clock in clocks:
        assert abs(clock["value"]) <= clock["measured"]["least"] / 2 + 1
    assert first.outcome("clock-offset") == "passed"
    assert two.leftovers() == ()
