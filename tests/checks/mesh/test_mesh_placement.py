"""NC830 mesh-placement."""

from __future__ import annotations

from ncclcheck.measure.mesh.parse import parse_mesh
from ncclcheck.model.snapshot import Snapshot
from tests.builders import cluster, with_facts, with_silent
from tests.checks.running import finding, is_silent, run


def seen(text: str, nodes: int = 4) -> Snapshot:
    """A cluster with 8 GPUs on each node, whose command lines name this mesh."""
    snapshot = cluster(nodes)
    for node in snapshot.nodes:
        snapshot = with_facts(snapshot, node.host, mesh=parse_mesh(text))
    return snapshot


def test_groups_inside_nodes_are_silent() -> None:
    assert is_silent("mesh-placement", seen("pp=2,dp=2,tp=8"))


def test_groups_across_nodes_are_named_with_the_order_to_use() -> None:
    found = finding("mesh-placement", seen("tp=8,dp=4"))
    assert found.severity == "warning"
    assert "4 of 4 tp groups of 8 ranks span 4 nodes, where 1 can hold them" in found.summary
    assert found.fixes[0].commands == ("ncclcheck preflight --mesh dp=4,tp=8",)


def test_data_parallelism_may_span_nodes() -> None:
    assert is_silent("mesh-placement", seen("dp=32"))


def test_without_all_nodes_nothing_is_known() -> None:
    assert run("mesh-placement", with_silent(seen("tp=8,dp=4"), "node03")).outcome == "unknown"


def test_without_a_mesh_it_does_not_apply() -> None:
    assert run("mesh-placement", cluster(2)).outcome == "not_applicable"
