"""NC833 mesh-wrong-data."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.model.benchmarks.mesh_bench import MeshPoint
from ncclcheck.model.snapshot import Snapshot
from tests.builders import cluster
from tests.checks.running import finding, is_silent, run
from tests.mesh_builders import group_time, mesh_point, mesh_result


def seen(point: MeshPoint) -> Snapshot:
    return replace(cluster(4), bench=mesh_result(point))


def test_correct_data_is_silent() -> None:
    assert is_silent("mesh-wrong-data", seen(mesh_point(1000, 1000)))


def test_a_wrong_group_is_named() -> None:
    groups = (group_time(0, 1000), group_time(1, 1000, wrong=7))
    found = finding("mesh-wrong-data", seen(mesh_point(1000, 1000, groups=groups, wrong=7, wrong_groups=1)))
    assert found.severity == "error"
    assert "gave 7 wrong elements in 1 of 2 groups; the first: group 1 (ranks 2, 3)" in found.summary
    assert found.hosts == ("node03", "node04")


def test_a_wrong_mix_is_found() -> None:
    bench = mesh_result(mesh_point(1000, 1000))
    assert bench.mesh is not None
    assert bench.mesh.mix is not None
    wrong = replace(bench, mesh=replace(bench.mesh, mix=replace(bench.mesh.mix, wrong=3)))
    assert (
        "mix of all groups gave 3 wrong"
        in finding("mesh-wrong-data", replace(cluster(4), bench=wrong)).summary
    )


def test_what_was_not_verified_is_not_known() -> None:
    groups = (group_time(0, 1000, wrong=None),)
    found = run("mesh-wrong-data", seen(mesh_point(1000, groups=groups, wrong=None)))
    assert found.outcome == "unknown"
    assert "was not verified" in found.reason


def test_what_the_backend_does_not_do_is_not_known() -> None:
    found = run("mesh-wrong-data", seen(mesh_point(1000, groups=(), wrong=None, unsupported="gloo cannot")))
    assert found.outcome == "unknown"
    assert found.reason == "all_reduce of 1M in dp was not measured: gloo cannot"
