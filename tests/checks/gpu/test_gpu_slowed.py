"""NC409 gpu-slowed."""

from __future__ import annotations

import pytest

from ncclcheck.model.fact import Missing
from tests.builders import cluster
from tests.checks.running import finding, is_silent, run
from tests.fact_builders import GONE
from tests.gpu_builders import with_all_gpus, with_gpu


def test_idle_gpus_are_silent() -> None:
    assert is_silent("gpu-slowed", cluster(4))


@pytest.mark.parametrize(
    ("reasons", "severity"),
    [
        (("hardware thermal slowdown",), "warning"),
        (("software power cap", "hardware power brake"), "warning"),
        (("applications clocks setting",), "info"),
        (("software power cap",), "info"),
    ],
)
def test_the_reason_decides(reasons: tuple[str, ...], severity: str) -> None:
    found = finding("gpu-slowed", with_gpu(cluster(4), "node02", 5, slowdowns=reasons))
    assert (found.severity, found.hosts) == (severity, ("node02",))
    assert f"GPU 5 (0000:05:00.0): {', '.join(reasons)}" in found.summary


def test_what_was_not_read_is_unknown_and_what_no_gpu_tells_is_not_asked() -> None:
    assert run("gpu-slowed", with_gpu(cluster(4), "node02", 5, slowdowns=GONE)).outcome == "unknown"
    untold = with_all_gpus(cluster(2), slowdowns=Missing("unsupported", "old"))
    assert run("gpu-slowed", untold).outcome == "not_applicable"
