"""soak-wrong-data."""

from __future__ import annotations

from tests.checks.running import finding
from tests.hardware_builders import rdma_cluster as cluster
from tests.soak_builders import healthy_lines, soak_block, with_soak


def test_wrong_elements_name_the_hosts_that_hold_them() -> None:
    lines = [*healthy_lines()[:-1], soak_block(40, wrong=5, wrong_ranks=(3,))]
    found = finding("soak-wrong-data", with_soak(cluster(4), lines))
    assert found.hosts == ("node04",)
    assert "5 wrong elements in block 40" in found.summary
