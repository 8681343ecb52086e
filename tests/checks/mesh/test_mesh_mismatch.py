"""NC831 mesh-mismatch."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ncclcheck.measure.mesh.parse import parse_mesh
from ncclcheck.model.fact import Missing
from tests.builders import cluster, with_facts
from tests.checks.mesh.test_mesh_placement import seen
from tests.checks.running import finding, is_silent, run
from tests.fact_builders import launch


def test_sizes_that_fit_are_silent() -> None:
    assert is_silent("mesh-mismatch", seen("dp=4,tp=8"))
    assert is_silent("mesh-mismatch", seen("dp=-1,tp=8"))


def test_sizes_that_do_not_multiply_to_the_job_are_an_error() -> None:
    found = finding("mesh-mismatch", seen("dp=4,tp=4"))
    assert found.severity == "error"
    assert "dp=4,tp=4 has 16 ranks, and the job has 32" in found.summary


def test_a_node_with_another_order_is_named() -> None:
    found = finding("mesh-mismatch", with_facts(seen("dp=4,tp=8"), "node03", mesh=parse_mesh("tp=8,dp=4")))
    assert found.hosts == ("node03",)
    assert found.severity == "error"


def test_a_node_without_one_is_not_passed() -> None:
    assert run("mesh-mismatch", with_facts(seen("dp=4,tp=8"), "node03", mesh=None)).outcome == "unknown"


def test_where_the_number_of_ranks_is_only_assumed_nothing_is_known() -> None:
    snapshot = seen("dp=4,tp=4", nodes=2)
    for rank, node in enumerate(snapshot.nodes):
        alone = replace(launch(rank, 2), nproc_per_node=None, local_world_size=1)
        snapshot = with_facts(snapshot, node.host, gpus=(), launch=alone)
    assert run("mesh-mismatch", snapshot).outcome == "unknown"


def test_without_a_mesh_it_does_not_apply() -> None:
    assert run("mesh-mismatch", cluster(2)).outcome == "not_applicable"


@pytest.mark.parametrize("slug", ["mesh-mismatch", "mesh-placement"])
def test_sizes_that_could_not_be_read_are_unknown(slug: str) -> None:
    why = Missing(
        "unsupported", "the parallel sizes come from --yaml-cfg m.yaml, which is not read: give --mesh"
    )
    snapshot = cluster(2)
    for node in snapshot.nodes:
        snapshot = with_facts(snapshot, node.host, mesh=why)
    found = run(slug, snapshot)
    assert found.outcome == "unknown"
    assert "m.yaml" in found.reason
