"""link-flap."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.model.benchmarks.soak import NodeCounts, SoakBlock
from tests.checks.running import finding, run
from tests.hardware_builders import rdma_cluster as cluster
from tests.soak_builders import healthy_lines, soak_block, with_soak


def test_a_link_that_went_down_is_named_with_its_node_though_nothing_became_slower() -> None:
    lines = healthy_lines()
    lines[21] = soak_block(20, nodes=(NodeCounts("node04", {"eth0 carrier_changes": 2}),))
    found = finding("link-flap", with_soak(cluster(4), lines))
    assert found.hosts == ("node04",)
    assert "the carrier of eth0 on node04 changed 2 times, from 0:03:20 to 0:03:30" in found.summary


def test_a_node_whose_carriers_were_not_read_is_unknown() -> None:
    lines = [
        replace(line, nodes=tuple(node for node in line.nodes if node.host != "node03"))
        if isinstance(line, SoakBlock)
        else line
        for line in healthy_lines()
    ]
    found = run("link-flap", with_soak(cluster(4), lines))
    assert found.outcome == "unknown"
    assert "node03" in str(found)


def test_a_reading_that_failed_once_is_none_that_misses_anything() -> None:
    lines = healthy_lines()
    lines[21] = soak_block(20, nodes=())
    assert run("link-flap", with_soak(cluster(4), lines)).outcome == "passed"
