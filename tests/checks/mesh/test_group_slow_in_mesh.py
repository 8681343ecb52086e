"""NC832 group-slow-in-mesh."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.measure.mesh.parse import parse_mesh
from ncclcheck.measure.mesh.slow_groups import slow_groups
from ncclcheck.model.fact import Missing
from ncclcheck.model.snapshot import Snapshot
from tests.bench_builders import bench_result
from tests.builders import cluster, with_facts
from tests.checks.running import finding, is_silent, run
from tests.mesh_builders import MESH_PLAN, group_time, mesh_point, mesh_result


def seen(*times_us: float, **changes: object) -> Snapshot:
    return replace(cluster(4), bench=mesh_result(mesh_point(*times_us, **changes)))


def test_equal_groups_are_silent() -> None:
    assert is_silent("group-slow-in-mesh", seen(1000, 1050))


def test_the_slow_group_is_named_with_its_ranks_and_hosts() -> None:
    found = finding("group-slow-in-mesh", seen(1000, 2000, alone_us=1900.0))
    assert found.hosts == ("node03", "node04")
    assert "group 1 of dp (ranks 2, 3) delays the job" in found.summary
    assert "2.00 times as long as the others; alone it is as slow" in found.summary
    assert found.severity == "warning"


def test_what_is_slow_only_beside_other_groups_is_said() -> None:
    assert "alone it is not" in finding("group-slow-in-mesh", seen(1000, 2000)).summary


def test_a_group_is_named_once_with_its_worst_call() -> None:
    slower = mesh_point(1000, 5000, op="all_gather")
    found = finding(
        "group-slow-in-mesh", replace(cluster(4), bench=mesh_result(mesh_point(1000, 2000), slower))
    )
    assert "all_gather" in found.summary


def test_without_groups_it_does_not_apply() -> None:
    assert run("group-slow-in-mesh", replace(cluster(4), bench=bench_result())).outcome == "not_applicable"
    assert run("group-slow-in-mesh", cluster(4)).outcome == "not_applicable"


def test_groups_that_were_not_measured_are_not_known() -> None:
    result = bench_result()
    bench = replace(result, plan=replace(result.plan, mesh=MESH_PLAN))
    assert run("group-slow-in-mesh", replace(cluster(4), bench=bench)).outcome == "unknown"


def test_a_benchmark_that_failed_leaves_the_groups_unknown_where_there_are_any() -> None:
    lost = replace(cluster(2), bench=Missing("error", "lost"))
    assert run("group-slow-in-mesh", lost).outcome == "not_applicable"
    asked = with_facts(lost, "node01", mesh=parse_mesh("dp=2,tp=8"))
    assert run("group-slow-in-mesh", asked).outcome == "unknown"


def test_what_the_backend_does_not_do_is_not_known() -> None:
    found = run("group-slow-in-mesh", seen(1000, groups=(), slow=(), judged=0, unsupported="gloo cannot"))
    assert found.outcome == "unknown"
    assert found.reason == "all_reduce of 1M in dp was not measured: gloo cannot"


def test_a_group_without_another_to_compare_with_is_not_judged() -> None:
    assert run("group-slow-in-mesh", seen(1000)).outcome == "not_applicable"
    inside = tuple(group_time(number, 1000, nodes=1) for number in range(2))
    point = mesh_point(1000, 1000, groups=inside, judged=slow_groups(inside, on_gpus=False).judged)
    assert (
        run("group-slow-in-mesh", replace(cluster(4), bench=mesh_result(point))).outcome == "not_applicable"
    )


def test_what_is_not_known_weighs_more_than_what_has_no_other() -> None:
    missing = mesh_point(1000, groups=(), unsupported="gloo cannot")
    bench = mesh_result(mesh_point(1000), missing)
    assert run("group-slow-in-mesh", replace(cluster(4), bench=bench)).outcome == "unknown"
