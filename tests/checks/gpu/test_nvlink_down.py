"""NC406 nvlink-down."""

from __future__ import annotations

from ncclcheck.model.fact import Missing
from ncclcheck.model.gpu import NvLink
from tests.builders import cluster
from tests.checks.running import finding, is_silent, run
from tests.fact_builders import GONE
from tests.gpu_builders import LINKS, links, with_all_gpus, with_gpu

ALL_DOWN = links(*range(LINKS))


def test_all_active_is_silent() -> None:
    assert is_silent("nvlink-down", cluster(4))


def test_a_gpu_with_links_down_is_named_with_the_links() -> None:
    found = finding("nvlink-down", with_gpu(cluster(4), "node02", 5, nvlinks=links(3, 7)))
    assert (found.severity, found.hosts) == ("error", ("node02",))
    assert "GPU 5 (0000:05:00.0) has 16 active NVLinks (down: 3, 7)" in found.summary
    assert "have 18" in found.summary


def test_links_that_are_inactive_by_design_are_no_fault() -> None:
    assert is_silent("nvlink-down", with_all_gpus(cluster(4), nvlinks=ALL_DOWN))
    assert is_silent("nvlink-down", with_all_gpus(cluster(4), nvlinks=links(0, 1, 2, 3, 4, 5)))


def test_one_gpu_that_has_more_than_the_others_makes_none_of_them_sick() -> None:
    assert is_silent(
        "nvlink-down", with_gpu(with_all_gpus(cluster(2), nvlinks=ALL_DOWN), "node01", 0, nvlinks=links())
    )


def test_other_products_are_compared_among_themselves() -> None:
    snapshot = cluster(2)
    for index in range(8):
        snapshot = with_gpu(snapshot, "node02", index, name="NVIDIA H100 NVL", nvlinks=ALL_DOWN)
    assert is_silent("nvlink-down", snapshot)


def test_a_tie_is_said_to_be_one() -> None:
    snapshot = cluster(2)
    for index in range(8):
        snapshot = with_gpu(snapshot, "node02", index, nvlinks=links(1))
    found = finding("nvlink-down", snapshot)
    assert (found.severity, found.hosts) == ("warning", ("node02",))
    assert "no majority" in found.summary


def test_links_that_were_not_read_are_unknown() -> None:
    assert run("nvlink-down", with_gpu(cluster(4), "node02", 5, nvlinks=GONE)).outcome == "unknown"
    one = (NvLink(0, GONE), *links()[1:])
    assert run("nvlink-down", with_gpu(cluster(4), "node02", 5, nvlinks=one)).outcome == "unknown"


def test_gpus_without_nvlink_are_not_judged() -> None:
    assert run("nvlink-down", with_all_gpus(cluster(2), nvlinks=())).outcome == "not_applicable"
    old = with_all_gpus(cluster(2), nvlinks=Missing("unsupported", "x"))
    assert run("nvlink-down", old).outcome == "not_applicable"
