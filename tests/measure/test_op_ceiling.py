"""Ceilings: checked against published measurements, which must lie below them and not far."""

from __future__ import annotations

import pytest

from ncclcheck.measure.op_ceiling import (
    ceiling,
    inside_limit_gb_s,
    network_limit_gb_s,
    network_ring_gb_s,
    nvlink_term,
    pcie_gb_s,
)
from ncclcheck.measure.traffic import Shape, Term
from ncclcheck.model.bench import Op


def nics(count: int, gbit_s: float) -> Term:
    return Term(count * gbit_s / 8, f"{count} x {gbit_s:g} Gbit/s", "link-speed", count * gbit_s / 8, count)


def nvlink(links: int, capability: int) -> Term:
    found = nvlink_term(links, capability)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("links", "capability", "gb_s"), [(12, 80, 240.0), (18, 90, 370.8), (18, 100, 721.8), (6, 70, 120.0)]
)
def test_nvlinks_as_nccl_counts_them(links: int, capability: int, gb_s: float) -> None:
    assert nvlink(links, capability).gb_s == pytest.approx(gb_s)


def test_a_gpu_without_nvlink_has_no_such_term() -> None:
    assert nvlink_term(0, 52) is None


@pytest.mark.parametrize(
    ("speed", "width", "gb_s"), [(16.0, 16, 31.5), (32.0, 16, 63.0), (64.0, 16, 121.0), (5.0, 8, 4.0)]
)
def test_pcie_rates_less_their_encoding(speed: float, width: int, gb_s: float) -> None:
    assert pcie_gb_s(speed, width) == pytest.approx(gb_s, rel=0.001)


# Published figures (benchmarks of H100 10x8, p5 2x8, A3 Mega, Polaris): share of the ceiling that was reached.
@pytest.mark.parametrize(
    ("op", "shape", "network", "measured", "share"),
    [
        ("all_reduce", Shape(40, 10), nics(4, 400), 196.4, 0.98),
        ("all_to_all", Shape(16, 2), nics(8, 400), 92.0, 0.98),
        ("all_to_all", Shape(80, 10), nics(8, 400), 50.4, 0.92),
        ("all_to_all", Shape(16, 2), nics(8, 200), 40.2, 0.86),
        ("all_reduce", Shape(32, 8), nics(2, 200), 36.5, 0.73),
    ],
)
def test_published_figures_lie_below_the_ceiling(
    op: Op, shape: Shape, network: Term, measured: float, share: float
) -> None:
    assert measured / network_ring_gb_s(op, shape, network) == pytest.approx(share, abs=0.01)


def test_the_term_that_binds_is_the_lower_one() -> None:
    many = ceiling("all_reduce", Shape(80, 10), 364.1, nics(8, 400), nvlink(18, 90))
    assert many is not None
    assert (many.binds, round(many.reached, 3)) == ("18 NVLinks of 20.6 GB/s per GPU", 0.982)
    few = ceiling("all_reduce", Shape(40, 10), 196.4, nics(4, 400), nvlink(18, 90))
    assert few is not None
    assert (few.binds, few.busbw_gb_s) == ("4 x 400 Gbit/s", 200.0)


def test_800_cannot_happen_on_two_nodes_of_400_and_488_can() -> None:
    """Two nodes of eight H100 measured 488 GB/s: a tree. A shipped gate asked for 800."""
    found = ceiling("all_reduce", Shape(16, 2), 488.0, nics(32, 100), nvlink(18, 90), switches_reduce=True)
    assert found is not None
    assert found.limit_gb_s is not None
    assert 488 < found.limit_gb_s < 800


def test_one_node_with_nvls_exceeds_the_ring_but_not_the_limit() -> None:
    found = ceiling("all_reduce", Shape(8, 1), 482.3, None, nvlink(18, 90), nvls=True)
    assert found is not None
    assert found.reached > 1.25
    assert found.limit_gb_s == pytest.approx(700)
    assert inside_limit_gb_s("all_gather", 8, nvlink(18, 90), nvls=True) == pytest.approx(450)
    assert inside_limit_gb_s("all_reduce", 8, nvlink(12, 80), nvls=False) == pytest.approx(300)


def test_on_plain_ethernet_with_one_rank_per_node_the_ring_is_the_limit() -> None:
    for op in ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "send_recv"):
        wire = nics(1, 1)
        assert network_ring_gb_s(op, Shape(4, 4), wire) == pytest.approx(0.125)
        assert network_limit_gb_s(op, Shape(4, 4), wire, switches_reduce=False) == pytest.approx(0.125)


def test_switches_that_add_nearly_double_an_all_reduce() -> None:
    limit = network_limit_gb_s("all_reduce", Shape(64, 8), nics(8, 400), switches_reduce=True)
    assert limit == pytest.approx(400 * 2 * 63 / 64)


def test_a_gather_is_bound_by_the_card_of_its_root() -> None:
    assert network_ring_gb_s("gather", Shape(4, 4), nics(1, 8)) == pytest.approx(1.0)
    assert network_ring_gb_s("scatter", Shape(16, 2), nics(1, 8)) == pytest.approx(15 / 8)


def test_a_measured_bandwidth_is_no_limit() -> None:
    measured = Term(0.12, "0.96 Gbit/s to eth0, as measured", "measured", None)
    found = ceiling("all_reduce", Shape(2, 2), 0.119, measured, None)
    assert found is not None
    assert (found.limit_gb_s, found.source) == (None, "measured")


def test_one_rank_and_unknown_links_have_no_ceiling() -> None:
    assert ceiling("all_reduce", Shape(1, 1), 0.0, None, nvlink(18, 90)) is None
    assert ceiling("all_reduce", Shape(2, 2), 1.0, None, None) is None
