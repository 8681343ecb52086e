"""The parallel groups in the report, by dimension."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ncclcheck.model.benchmarks.mesh import DimensionPlacement, MeshPlacement
from ncclcheck.model.benchmarks.mesh_bench import MeshBench
from ncclcheck.model.fact import Missing
from ncclcheck.report.mesh_report import mesh_report
from tests.mesh_builders import mesh_point

ABSENT = Missing("absent", "no hosts")
PLACED = MeshPlacement("dp=2,tp=2", "--mesh", (DimensionPlacement("dp", 2, 2, 2, 0, 1),))


def test_a_group_has_its_ranks_and_what_was_measured_in_it() -> None:
    small, large = mesh_point(3000.0, 1000.0), mesh_point(9000.0, 4000.0, size_bytes=4 << 20)
    (dimension,) = mesh_report(MeshBench("dp=2,tp=2", (small, large)), PLACED).dimensions
    assert (dimension.name, dimension.size) == ("dp", 2)
    assert (dimension.nodes_spanned, dimension.least_nodes) == (2, 1)
    assert [group.ranks for group in dimension.groups] == [(0, 1), (2, 3)]
    assert [(point.size_bytes, point.time_us) for point in dimension.groups[0].points] == [
        (1 << 20, 3000.0),
        (4 << 20, 9000.0),
    ]


def test_the_contention_is_the_worst_of_all_collectives() -> None:
    points = (mesh_point(2000.0), mesh_point(3000.0), mesh_point(1000.0, contention=None))
    (dimension,) = mesh_report(MeshBench("dp=2", points), ABSENT).dimensions
    assert dimension.contention == pytest.approx(3.0)


def test_what_is_not_known_is_null() -> None:
    point = replace(mesh_point(1000.0), contention=None)
    (dimension,) = mesh_report(MeshBench("dp=2", (point,)), ABSENT).dimensions
    assert (dimension.nodes_spanned, dimension.least_nodes, dimension.contention) == (None, None, None)
