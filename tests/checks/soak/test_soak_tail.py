"""soak-tail."""

from __future__ import annotations

import pytest

from ncclcheck.model.benchmarks.soak import SoakTail
from tests.checks.running import finding
from tests.hardware_builders import rdma_cluster as cluster
from tests.soak_builders import healthy_lines, soak_block, with_soak


@pytest.mark.parametrize(("tails", "severity"), [((20,), "warning"), ((20, 24, 28), "error")])
def test_the_rank_that_kept_the_others_waiting_is_named(tails: tuple[int, ...], severity: str) -> None:
    lines = healthy_lines()
    for number in tails:
        lines[number + 1] = soak_block(number, tails=(SoakTail(200_000.0, 2, "stopped", 199_000.0),))
    found = finding("soak-tail", with_soak(cluster(4), lines))
    assert (found.hosts, found.severity) == (("node03",), severity)
    assert "rank 2 on node03 did not run" in found.summary
