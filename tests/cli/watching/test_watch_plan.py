"""How often a watcher looks, by the patience that it has."""

from __future__ import annotations

from pathlib import Path

from ncclcheck.cli.watching.watch_plan import WatchPlan


def test_a_short_patience_has_shorter_pauses_between_looks() -> None:
    plans = [WatchPlan(1, Path(), patience_s, dumps=False) for patience_s in (6.0, 60.0, 600.0)]
    assert [(plan.look_s, plan.apart_s) for plan in plans] == [(0.5, 1.0), (5.0, 10.0), (5.0, 10.0)]
