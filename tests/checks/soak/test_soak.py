"""When there is no soak to judge, and times in words."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ncclcheck.checks.soak._soak import time_words
from ncclcheck.model.fact import Missing
from tests.bench_builders import with_bench
from tests.checks.running import run
from tests.hardware_builders import rdma_cluster as cluster
from tests.soak_builders import healthy_lines, with_soak

SLUGS = ("soak-drop", "soak-tail", "link-flap", "soak-wrong-data")


@pytest.mark.parametrize("slug", SLUGS)
def test_a_stable_series_passes_a_short_one_is_unknown_and_none_does_not_apply(slug: str) -> None:
    nodes = cluster(4)
    assert run(slug, with_soak(nodes, healthy_lines())).outcome == "passed"
    assert "8 blocks are too few" in run(slug, with_soak(nodes, healthy_lines(8))).reason
    assert run(slug, with_bench(nodes)).outcome == "not_applicable"
    assert run(slug, replace(nodes, bench=Missing("error", "no store"))).outcome == "not_applicable"


def test_the_checks_of_a_benchmark_do_not_apply_to_a_soak() -> None:
    assert run("bench-wrong-data", with_soak(cluster(4), healthy_lines())).outcome == "not_applicable"


def test_times_are_told_as_people_read_them() -> None:
    assert time_words(3725) == "1:02:05"
