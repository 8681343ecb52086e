"""The groups of a job on its nodes."""

from __future__ import annotations

from ncclcheck.measure.mesh.job_mesh import meshes, placement
from ncclcheck.model.benchmarks.mesh import Mesh, MeshDimension, MeshPlacement
from ncclcheck.model.fact import Missing
from tests.builders import cluster, with_facts
from tests.checks.mesh.test_mesh_placement import seen


def test_the_ranks_are_counted_node_by_node() -> None:
    found = placement(seen("dp=4,tp=8"))
    assert isinstance(found, MeshPlacement)
    assert [dimension.nodes_spanned for dimension in found.dimensions] == [4, 1]


def test_without_a_mesh_there_is_no_placement() -> None:
    assert meshes(cluster(2)) == {}
    found = placement(cluster(2))
    assert isinstance(found, Missing)
    assert found.missing == "absent"


def test_what_no_command_line_could_say_is_not_believed() -> None:
    wild = Mesh((MeshDimension("dp", 4),), (MeshDimension("ep", 0, ("dp",)),))
    assert meshes(with_facts(cluster(2), "node02", mesh=wild)) == {}


def test_a_mesh_that_does_not_fit_is_an_error() -> None:
    found = placement(seen("dp=3,tp=8"))
    assert isinstance(found, Missing)
    assert found.missing == "error"
