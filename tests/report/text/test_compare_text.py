"""What changed, in words."""

from __future__ import annotations

import json

from msgspec.structs import replace

from ncclcheck.report.compare import changes
from ncclcheck.report.text.compare_text import changes_json, changes_markdown, changes_text
from tests.report.reports import check_run, finding, found, report
from tests.report.samples import calm

OLD = replace(report([check_run("mtu-differs"), check_run("gpu-count", code="NC401")]), bench=calm(2))
_FOUND = finding("mtu-differs", "node02", summary="an MTU\x1b[31m")
_RUNS = [found(_FOUND), check_run("gpu-count", "unknown", "why", code="NC401")]
NEW = replace(report(_RUNS), bench=calm(2, seed=2))


def test_text_ends_with_the_exit_code_and_its_reason() -> None:
    text = changes_text(changes(OLD, NEW, 0.05))
    assert "gained  error  NC213 mtu-differs  on node02\n  an MTU\\x1b[31m\n" in text
    assert "NC401 gpu-count  passed before, now unknown: why" in text
    assert "also: error gained: mtu-differs on node02" in text
    last = text.splitlines()[-1]
    assert last == "exit 1: the verdict was pass and is fail: 1 error: mtu-differs on node02"
    assert changes_text(changes(OLD, OLD, 0.05)).splitlines()[-1] == "exit 0: nothing got worse"


def test_json_holds_all_of_it() -> None:
    document = json.loads(changes_json(changes(OLD, NEW, 0.05)))
    assert document["findings"][0]["fate"] == "gained"
    assert document["bandwidth"][0]["size_bytes"] == 1 << 20
    assert len(document["regressions"]) == 3


def test_markdown_names_what_is_worse_first() -> None:
    text = changes_markdown(changes(OLD, NEW, 0.05))
    assert text.startswith("# ❌ 3 things got worse")
    assert "| gained: error | NC213 mtu-differs | `node02` | an MTU\\\\x1b\\[31m |" in text
    assert changes_markdown(changes(OLD, OLD, 0.05)).startswith("# ✅ Nothing got worse")


def test_what_cannot_be_compared_is_no_pass() -> None:
    assert OLD.bench is not None
    few = tuple(replace(point, iters=2) for point in OLD.bench.points)
    blind = changes(OLD, replace(OLD, bench=replace(OLD.bench, points=few)), 0.05)
    told = "othing got worse that can be told; 20 of 20 points cannot be compared"
    assert changes_text(blind).splitlines()[-1] == f"exit 0: n{told}"
    assert changes_markdown(blind).startswith(f"# ✅ N{told}\n\n- old: ")
    other = changes(OLD, replace(OLD, bench=replace(OLD.bench, backend="gloo")), 0.05)
    assert changes_text(other).endswith(
        "nothing got worse that can be told; the bandwidths cannot be compared\n"
    )
