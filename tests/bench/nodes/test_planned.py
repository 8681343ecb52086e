"""The plan of a benchmark with parallel groups."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.bench.footprint import memory_needed
from ncclcheck.bench.nodes.planned import planned
from ncclcheck.measure.mesh.parse import parse_mesh
from ncclcheck.model.bench import BenchPlan
from ncclcheck.model.bench_setup import BenchNetwork, BenchRequest, MeshRequest
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.snapshot import Snapshot
from tests.builders import cluster, with_facts

NETWORK = BenchNetwork("gloo", {"node01": 2, "node02": 2}, {}, {}, "")
REQUEST = BenchRequest(mesh=MeshRequest(parse_mesh("dp=2,tp=2"), mix=True))


def plan(snapshot: Snapshot, request: BenchRequest = REQUEST) -> Fact[BenchPlan]:
    return planned(request, NETWORK, snapshot, 600.0)


def told(first: str, second: str) -> Snapshot:
    snapshot = with_facts(cluster(2), "node01", mesh=parse_mesh(first))
    return with_facts(snapshot, "node02", mesh=parse_mesh(second))


def test_the_groups_get_the_larger_part_of_the_budget() -> None:
    found = plan(told("dp=2,tp=2", "dp=2,tp=2"))
    assert isinstance(found, BenchPlan)
    assert found.mesh is not None
    assert found.mesh.budget_s + found.budget_s == REQUEST.budget_s
    assert found.mesh.budget_s > found.budget_s
    without = plan(cluster(2), replace(REQUEST, mesh=None))
    assert isinstance(without, BenchPlan)
    assert (without.mesh, without.budget_s) == (None, REQUEST.budget_s)


def test_another_order_on_one_node_is_named_before_anything_is_measured() -> None:
    found = plan(told("dp=2,tp=2", "tp=2,dp=2"))
    assert isinstance(found, Missing)
    assert (
        found.detail == "the parallel groups differ between nodes: dp=2,tp=2 on node01, tp=2,dp=2 on node02"
    )


def test_a_mesh_of_more_ranks_does_not_fit() -> None:
    found = plan(cluster(2), replace(REQUEST, mesh=MeshRequest(parse_mesh("dp=4,tp=2"))))
    assert isinstance(found, Missing)
    assert found.detail == "dp=4,tp=2 has 8 ranks, and the job has 4"


def test_the_buffers_of_the_groups_and_of_the_mix_count_as_memory() -> None:
    sizes = replace(REQUEST, sizes_bytes=(1 << 28,))
    whole, with_mix = plan(cluster(2), replace(sizes, mesh=None)), plan(cluster(2), sizes)
    assert isinstance(whole, BenchPlan)
    assert isinstance(with_mix, BenchPlan)
    assert memory_needed(with_mix, 4) > memory_needed(whole, 4) + 3 * (1 << 28)
