"""Trials of settings: a benchmark that knows which settings are fast, played through as node 0 leads it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.bench.trials.lead_trials import SetRun, TrialLead, lead_trials
from ncclcheck.bench.trials.trial_set import TrialSet
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.model.bench import BenchPlan, BenchResult, RankFailure
from ncclcheck.model.bench_setup import BenchNetwork, BenchRequest
from ncclcheck.model.benchmarks.trials import TryRequest
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.snapshot import Snapshot
from tests.bench_builders import bench_point, bench_result
from tests.builders import cluster

SIZES = (1 << 20, 1 << 24)
FAST = {"GLOO_SOCKET_IFNAME": "fast"}
TRADE = {"GLOO_SOCKET_IFNAME": "trade"}
SAME = {"GLOO_SOCKET_IFNAME": "same"}
HANGS = {"GLOO_SOCKET_IFNAME": "hangs"}
WRONG = {"GLOO_SOCKET_IFNAME": "wrong"}
FASTEST = {"GLOO_SOCKET_IFNAME": "fastest"}
REFUSED = {"GLOO_SOCKET_IFNAME": "refused"}
# How fast the ranks are when bound there, per size.
SPEEDS: Mapping[str, tuple[float, ...]] = {
    "fast": (1.1, 1.1),
    "fastest": (1.3, 1.3),
    "trade": (1.2, 0.9),
}
FAILURE = RankFailure(1, "node02", "hung", "all_reduce 1M, iteration 3", "no answer", 8.0)


class Nodes(Struct):
    """Stand-ins of the nodes: what a set takes, and which sets were ordered.

    After `broken_after` sets as-is hangs, too; then everything is interrupted, or no time of the run is left.
    `hangs_after`, `slow_after`: how often an interface is measured until its sets hang, or are as slow as as-is. A
    hang takes `hang_s`.
    """

    noise: float = 0.005
    broken_after: int = 1 << 30
    interrupted_after: int = 1 << 30
    late_after: int = 1 << 30
    hang_s: float = 0.0
    hangs_after: Mapping[str, int] = {}
    slow_after: Mapping[str, int] = {}
    ordered: list[TrialSet] = []

    def count(self, name: str) -> int:
        """Return how many sets were bound to that interface."""
        return sum(_interface(trial) == name for trial in self.ordered)

    def measure(self, trial: TrialSet) -> Fact[BenchResult]:
        """Return what a set shows."""
        self.ordered.append(trial)
        random = Random(len(self.ordered))  # noqa: S311 (a sample, no secret)
        if len(self.ordered) > self.interrupted_after:
            raise KeyboardInterrupt
        if len(self.ordered) > self.late_after:
            return Missing("timeout", "3 s were left of --timeout")
        name = _interface(trial)
        if name == "refused":
            sets = bench_result(bench_point(SIZES[0], (0.0, 0.0)))
            return replace(
                sets, plan=trial.plan, refused=1, unfinished="gloo here cannot do it: not supported"
            )
        hangs = self.count(name) > self.hangs_after.get(name, 1 << 30)
        if name == "hangs" or hangs or len(self.ordered) > self.broken_after:
            time.sleep(self.hang_s)
            return replace(bench_result(bench_point(SIZES[0], (0.0, 0.0))), points=(), failures=(FAILURE,))
        is_slow = self.count(name) > self.slow_after.get(name, 1 << 30)
        speeds = (1.0, 1.0) if is_slow else SPEEDS.get(name, (1.0, 1.0))
        points = [
            bench_point(
                size,
                (0.0, 0.0),
                1000 / speed * math.exp(random.gauss(0, self.noise)),
                7 if name == "wrong" else 0,
            )
            for size, speed in zip(SIZES, speeds, strict=True)
        ]
        return replace(bench_result(*points), plan=trial.plan)


def _interface(trial: TrialSet) -> str:
    return trial.network.environment_of["node01"]["GLOO_SOCKET_IFNAME"] or ""


def led(
    nodes: Nodes, *arms: dict[str, str], say: Callable[[str], None] = lambda _: None, **how: Any
) -> Fact[BenchResult]:
    """Lead the trials of these arms; `how`: budget_s, left_s of the run, keep, as_is."""
    plan = BenchPlan("gloo", ("all_reduce",), SIZES, "float32", 5, None, 20.0, True)
    settings: dict[str, str | None] = {"GLOO_SOCKET_IFNAME": how.get("as_is", "eth0")}
    places = dict.fromkeys(("node01", "node02"), ("eth0", "10.0.0.1"))
    network = BenchNetwork(
        "gloo", {"node01": 1, "node02": 1}, places, dict.fromkeys(places, settings), "as it is"
    )
    request = BenchRequest(SIZES, budget_s=how.get("budget_s", 60.0), tries=TryRequest(arms, seed=1))
    run = SetRun(nodes.measure, say, how.get("keep", lambda _: None))
    return lead_trials(
        TrialLead(request, how.get("plan", plan), network, Deadline(how.get("left_s", 60.0)), run)
    )


def tried(*arms: dict[str, str], **nodes: Any) -> BenchResult:
    """What trials of these arms show."""
    as_is = nodes.pop("as_is", "eth0")
    found = led(Nodes(**nodes), *arms, as_is=as_is)
    assert isinstance(found, BenchResult), found
    return found


def with_trials(*arms: dict[str, str], **nodes: Any) -> Snapshot:
    """A cluster of two nodes on which these settings were tried."""
    return replace(cluster(2), bench=tried(*arms, **nodes))
