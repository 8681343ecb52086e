"""link-flap."""

from __future__ import annotations

from ncclcheck.model.benchmarks.soak import NodeCounts
from tests.checks.running import finding
from tests.hardware_builders import rdma_cluster as cluster
from tests.soak_builders import healthy_lines, soak_block, with_soak


def test_a_link_that_went_down_is_named_with_its_node_though_nothing_became_slower() -> None:
    lines = healthy_lines()
    lines[21] = soak_block(20, nodes=(NodeCounts("node04", {"eth0 carrier_changes": 2}),))
    found = finding("link-flap", with_soak(cluster(4), lines))
    assert found.hosts == ("node04",)
    assert "the carrier of eth0 on node04 changed 2 times, from 0:03:20 to 0:03:30" in found.summary
