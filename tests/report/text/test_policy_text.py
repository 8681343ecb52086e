"""The policy of a good node: met by that node, whatever it is like, and readable."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ncclcheck.checks.registry import Selection, run_checks
from ncclcheck.checks.rules import in_force
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import NodeFacts
from ncclcheck.model.policy.policy import parse_policy
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.report.text.policy_text import as_policy
from tests.builders import with_environment, with_facts, with_software, without
from tests.fact_builders import GONE, limits
from tests.hardware_builders import rdma_cluster, roce_cluster, with_port

JUDGES = ("software-unexpected", "env-unexpected", "node-unexpected")


def written(snapshot: Snapshot) -> str:
    return as_policy("node01", snapshot.nodes[0].facts, "0.1.0")


def outcomes(snapshot: Snapshot, text: str) -> dict[str, str]:
    """How the three judges end on that snapshot under that policy."""
    own = replace(snapshot, expected=parse_policy(text, "good.toml").expected)
    runs = run_checks(own, in_force(Selection(), own))
    return {run.slug: f"{run.outcome}: {run.reason}" for run in runs if run.slug in JUDGES}


ODD = {
    "InfiniBand": rdma_cluster(1),
    "RoCE": roce_cluster(1),
    "no driver": with_facts(
        rdma_cluster(1), "node01", gpus=Missing("absent", "no NVIDIA driver is installed")
    ),
    "unlimited": with_facts(rdma_cluster(1), "node01", limits=limits(nofile=None, memlock_kib=None)),
    "little": with_facts(rdma_cluster(1), "node01", limits=limits(memlock_kib=65, nofile=7)),
    "no torch": with_software(
        rdma_cluster(1),
        "node01",
        torch=Missing("absent", "no torch"),
        torch_cuda=Missing("absent", "no torch"),
    ),
    "variables": with_environment(
        rdma_cluster(1),
        "node01",
        NCCL_IB_HCA='a"b\\c',
        NCCL_DEBUG_SUBSYS="",
        NCCL_SOKET_IFNAME="x",
        NCCL_NET="(redacted)",
    ),
    "a port down": with_port(rdma_cluster(1), "node01", "mlx5_3", rate_gbps=100.0),
    "both link layers": with_port(rdma_cluster(1), "node01", "mlx5_3", link_layer="Ethernet"),
    "unread": without(without(rdma_cluster(1), "node01", "gpus", GONE), "node01", "rdma", GONE),
}


@pytest.mark.parametrize("name", ODD)
def test_a_node_meets_the_policy_that_was_written_of_it(name: str) -> None:
    snapshot = ODD[name]
    text = written(snapshot)
    assert all(outcome.startswith("passed") for outcome in outcomes(snapshot, text).values()), outcomes(
        snapshot, text
    )
    assert written(snapshot) == text


def test_the_policy_of_a_healthy_node_demands_everything() -> None:
    text = written(rdma_cluster(1))
    for line in (
        "gpus_per_node = 8",
        'torch = "2.9.0"',
        'driver = "570.86.15"',
        'model = "NVIDIA H100 80GB HBM3"',
        'memory = "80G"',
        'subnet = "10.0.0.0/24"',
        "rate_gbit_s = 400",
        "gpu_width = 16",
        'memlock = "unlimited"',
        'shm = "512G"',
        'NCCL_DEBUG = "WARN"',
    ):
        assert line in text.splitlines(), line
    assert "# nodes = 4" in text


def test_what_is_not_known_is_a_comment_with_the_reason() -> None:
    text = as_policy("bad\nname", NodeFacts(), "0.1.0")
    policy = parse_policy(text, "good.toml")
    assert policy.expected.expectations == ()
    assert "# torch: not known: torch: absent: not read in this run" in text
    assert "# What bad name is like" in text
