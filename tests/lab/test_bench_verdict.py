"""Is it good enough? Ceiling, floors and baseline on shaped links between real nodes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.lab import faults
from tests.lab.launched import Told, run
from tests.lab.nodes import Lab

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.alone]
LabOf = Callable[..., Lab]
SIZES = ("--sizes", "4M", "--iters", "6", "--warmup", "1", "--timeout", "100")


def bench_of(told: Told) -> dict[str, Any]:
    assert told.report is not None, str(told.finished)
    return dict(told.report["bench"])


def test_a_link_is_judged_by_its_ceiling_its_floors_and_its_last_good_run(lab: LabOf) -> None:
    two = lab(2)
    for node in two.nodes:
        faults.shape(node, "200mbit")
    saved = two.folder / "good.json"
    floors = ("--min-busbw", "all_reduce=0.02", "--min-busbw", "all_gather@4M=0.001")
    good = run(two, "bench", *SIZES, *floors, own_words={two["node1"]: ["--save", str(saved)]})["node1"]
    assert good.code == 0, str(good.finished)
    bench = bench_of(good)
    ceilings = {ceiling["op"]: ceiling for ceiling in bench["ceilings"]}
    assert ceilings["all_reduce"]["source"] == "measured"  # a veth has no speed of its own
    assert 0.9 < ceilings["all_reduce"]["reached"] <= 1.05
    assert 0.15 < ceilings["all_reduce"]["busbw_gb_s"] * 8 < 0.21
    # Two ranks of Gloo gather now at the same time and now one after the other (docs/measurements.md).
    gathered = ceilings["all_gather"]["reached"]
    told = [remark for remark in bench["remarks"] if remark.startswith(f"all_gather reached {gathered:.0%}")]
    assert len(told) == (gathered < 0.8)
    assert all("the bottleneck is the backend (gloo)" in remark for remark in told)
    assert "samples_us" not in json.dumps(bench)
    points = json.loads(saved.read_text())["snapshot"]["bench"]["points"]
    assert [len(point["samples_us"]) for point in points] == [6] * 2
    assert good.outcome("bench-below-floor") == "passed"

    for node in two.nodes:
        faults.shape(node, "80mbit")
    words = (
        "--ops",
        "all_reduce",
        "--no-preflight",
        "--baseline",
        str(saved),
        "--min-busbw",
        "all_reduce@4M=0.02",
    )
    slow = run(two, "bench", *SIZES, *words)["node1"]
    assert slow.code == 4, str(slow.finished)
    lost = slow.findings("bench-below-baseline")
    assert "all_reduce" in {one["summary"].split()[0] for one in lost}
    assert "4M lost 6" in str(lost) or "4M lost 5" in str(lost)
    assert "below the floor all_reduce@4M=0.020" in slow.finding("bench-below-floor")["summary"]
    assert "judged by the baseline" in bench_of(slow)["remarks"][-1]
    assert slow.last_line.startswith("exit 4:")
