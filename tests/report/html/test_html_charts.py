"""The data of the page's charts."""

from __future__ import annotations

import json
import math

from msgspec.structs import replace

from ncclcheck.report.html.html_charts import (
    MOST_RANKS,
    OUTCOMES,
    bench_curves,
    chart_data,
    failed_pairs,
    reach_matrix,
)
from tests.builders import cluster
from tests.probe_builders import probe
from tests.report.reports import report
from tests.report.samples import bench, comparison, full_report


def test_of_several_attempts_between_two_nodes_the_worst_is_shown() -> None:
    probes = (probe("tcp", 0, 1), probe("tcp", 0, 1, "filtered"), probe("tcp", 1, 0), probe("clock", 0, 1))
    made = replace(report(snapshot=cluster(2)), probes=probes)
    matrix = reach_matrix(made)
    assert matrix["hosts"] == ["node01", "node02"]
    assert matrix["kinds"] == {
        "tcp": [[0, 1, OUTCOMES.index("filtered"), "eth0 10.0.0.2"], [1, 0, 0, "eth0 10.0.0.1"]]
    }
    assert [pair.outcome for pair in failed_pairs(made)] == ["filtered"]


def test_a_value_that_was_not_measured_is_no_number() -> None:
    made = report(snapshot=cluster(2))
    made = replace(
        made, probes=tuple(replace(one, value=math.nan) for one in made.probes if one.kind == "latency")
    )
    assert "latency" not in reach_matrix(made)["kinds"]


def test_only_the_latest_of_many_ranks_are_sent() -> None:
    curves = bench_curves(bench(100, 8))
    point = curves["points"][0]
    assert (len(point["ranks"]), point["of_ranks"]) == (MOST_RANKS, 800)
    assert max(point["ranks"], key=lambda rank: rank[2])[0] == 798
    assert curves["ceilings"][0]["busbw"] == 390.0


def test_there_is_no_chart_where_nothing_was_measured() -> None:
    assert chart_data(replace(report(), probes=())) == {}
    data = chart_data(replace(full_report(8), comparison=comparison(4)))
    assert set(data) == {"reach", "bench", "comparison"}
    assert json.loads(json.dumps(data, allow_nan=False)) == data
