"""--min-busbw, --baseline and --tolerance: what is refused before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from ncclcheck.cli.demands import bench_demands, load_baseline
from ncclcheck.cli.documents import SAVED_KIND
from ncclcheck.measure.mesh.parse import parse_mesh
from ncclcheck.model.bench_demands import TOLERANCE, BenchDemands, Floor
from ncclcheck.model.bench_setup import BenchRequest, MeshRequest
from ncclcheck.model.codec import decode, encode
from ncclcheck.model.errors import UsageError
from ncclcheck.model.report import SCHEMA_VERSION, Tool
from ncclcheck.model.saved import Saved
from ncclcheck.model.snapshot import Snapshot
from tests.bench_builders import bench_point, bench_result, with_bench
from tests.builders import cluster
from tests.cli.command_line import ncclcheck
from tests.report.reports import report

REQUEST = BenchRequest((1 << 20, 1 << 30), ("all_reduce", "all_gather"))
POINT = replace(bench_point(1 << 20, (0.0, 0.0)), samples_us=(1000.0, 1001.0, 1002.0))


def saved(snapshot: Snapshot) -> Saved:
    return Saved(
        SCHEMA_VERSION,
        SAVED_KIND,
        Tool("ncclcheck", "1"),
        "bench",
        "2026-11-01T10:00:00+00:00",
        1.0,
        False,
        snapshot,
    )


def written(folder: Path, document: object) -> str:
    path = folder / "last.json"
    path.write_bytes(encode(document))
    return str(path)


def test_nothing_demanded_and_everything() -> None:
    assert bench_demands({}, REQUEST) == BenchDemands()
    given = {"min_busbw": ("300", "all_reduce@1G=310", "300"), "tolerance": "12.5%"}
    found = bench_demands(given, REQUEST, (Floor(1.0, "all_gather"),))
    assert found.floors == (Floor(300.0), Floor(310.0, "all_reduce", 1 << 30), Floor(1.0, "all_gather"))
    assert found.tolerance == 0.125


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("reduce=3", "reduce is not measured: add it to --ops (all_reduce,all_gather)"),
        ("@2G=3", "2G is not measured: add it to --sizes (1M,1G)"),
        ("all_reduce@4K=3", "4K is not measured"),
    ],
)
def test_a_rule_that_no_point_can_match_is_refused(rule: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        bench_demands({"min_busbw": (rule,)}, REQUEST)
    assert str(caught.value).startswith(f"--min-busbw {rule!r}: ")
    assert words in str(caught.value)
    assert bench_demands({"min_busbw": (rule,), "from_": "old.json"}, REQUEST).floors


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("tp:all_reduce@64M=1", "64M is not measured: add it to --sizes"),
        ("tp:broadcast=1", "broadcast is not measured in tp: add it to --ops"),
        ("pp:all_reduce@1M=1", "all_reduce is not measured in pp: add it to --ops (send_recv)"),
        ("dp:all_reduce=1", "dp is not measured: add it to --dims"),
    ],
)
def test_a_rule_of_a_dimension_that_no_point_can_match_is_refused(rule: str, words: str) -> None:
    wish = MeshRequest(parse_mesh("pp=2,dp=2,tp=2", None), ("pp", "tp"))
    with pytest.raises(UsageError) as refused:
        bench_demands({"min_busbw": [rule]}, BenchRequest(mesh=wish))
    assert words in str(refused.value)
    assert bench_demands(
        {"min_busbw": ["tp:all_reduce@1M=1", "pp:send_recv=1"]}, BenchRequest(mesh=wish)
    ).floors


@pytest.mark.parametrize("text", ["", ".", "\u0665", "-1", "x", "5 percent", "91", "nan"])
def test_a_tolerance_that_is_none(text: str) -> None:
    with pytest.raises(UsageError, match="--tolerance"):
        bench_demands({"tolerance": text}, REQUEST)


def test_a_baseline_from_a_saved_run_has_its_samples(tmp_path: Path) -> None:
    file = written(tmp_path, saved(with_bench(cluster(2), POINT)))
    found = load_baseline(file)
    assert (found.file, found.created, found.backend) == (file, "2026-11-01T10:00:00+00:00", "gloo")
    assert found.points[0].samples_us == (1000.0, 1001.0, 1002.0)
    assert bench_demands({"baseline": file}, REQUEST).tolerance == TOLERANCE


def test_a_baseline_from_a_report_has_none(tmp_path: Path) -> None:
    found = load_baseline(written(tmp_path, report(snapshot=with_bench(cluster(2), POINT), command="bench")))
    assert found.points[0].samples_us == ()
    assert found.points[0].busbw_gb_s == 1.5


def test_what_is_no_baseline_is_refused(tmp_path: Path) -> None:
    wrong = replace(POINT, wrong=3)
    for snapshot, words in (
        (cluster(2), "there is no benchmark in it"),
        (replace(cluster(2), bench=replace(bench_result(), points=())), "there is no benchmark in it"),
        (with_bench(cluster(2), wrong), "gave wrong data"),
    ):
        with pytest.raises(UsageError, match=words):
            load_baseline(written(tmp_path, saved(snapshot)))
    with pytest.raises(UsageError, match="no such file"):
        load_baseline(str(tmp_path / "none.json"))


def test_a_saved_run_is_judged_by_new_demands_with_their_exit_codes(tmp_path: Path) -> None:
    """Missed: 4. What cannot be told: 3, since it was demanded. Met: what the run was without it."""
    bare = replace(with_bench(cluster(4)), bench_demands=BenchDemands())
    file = written(tmp_path, saved(bare))
    missed = ncclcheck("bench", "--from", file, "--min-busbw", "all_reduce=2")
    assert missed.code == 4, missed.out
    assert "exit 4: the benchmark: 1 error: bench-below-floor" in missed.out
    unknown = ncclcheck("bench", "--from", file, "--min-busbw", "all_gather=2")
    assert unknown.code == 3, unknown.out
    assert "the required check bench-below-floor did not run" in unknown.out
    again = str(tmp_path / "again.json")
    met = ncclcheck("bench", "--from", file, "--min-busbw", "1.5", "--baseline", file, "--save", again)
    assert met.code == 0, met.out
    kept = decode(Path(again).read_bytes(), Saved).snapshot.bench_demands
    assert kept.floors == (Floor(1.5),)
    assert ncclcheck("bench", "--from", again, "--min-busbw", "2").code == 4
