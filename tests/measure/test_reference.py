"""The reference table: what fits, and what must not be taken for it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ncclcheck.measure.reference import Hardware, fitting, is_model, rows
from ncclcheck.model.bench import Point
from tests.bench_builders import bench_point

P5 = Hardware("NVIDIA H100 80GB HBM3", 8, 2, "rdma", 3200.0)


def point(size_bytes: int, busbw_gb_s: float) -> Point:
    return replace(bench_point(size_bytes, (0.0, 0.0)), busbw_gb_s=busbw_gb_s)


def test_every_row_has_a_source_a_grade_and_a_plausible_figure() -> None:
    assert len(rows()) > 100
    for row in rows():
        assert row.source
        assert row.grade in ("A", "B", "C", "D")
        assert 0.5 < row.busbw_gb_s < 1000
        assert row.nodes >= 1
        assert row.gpus_per_node >= 1


def test_rows_of_the_same_hardware_op_and_size_fit() -> None:
    found = fitting(P5, [point(1 << 30, 430.0)])
    values = {row.busbw_gb_s for row, _ in found if row.note.startswith("AWS p5")}
    assert values == {436.9, 440.0, 313.3}
    assert found[0][0].grade == "A"
    assert found[0][0].date == "2024-07-19"


@pytest.mark.parametrize(
    "hardware",
    [
        replace(P5, nodes=3),
        replace(P5, gpus_per_node=3),
        replace(P5, gpu="NVIDIA L40S"),
        replace(P5, fabric="tcp"),
        replace(P5, gpu="NVIDIA H100 PCIe"),
    ],
)
def test_other_hardware_does_not_fit(hardware: Hardware) -> None:
    assert fitting(hardware, [point(1 << 30, 430.0)]) == ()


def test_another_rate_of_the_cards_does_not_fit_where_the_row_tells_it() -> None:
    found = fitting(replace(P5, node_gbit_s=800.0), [point(1 << 30, 90.0)])
    assert all(row.nic_gbit_s is None for row, _ in found)


def test_a_size_between_two_rows_is_not_interpolated() -> None:
    assert fitting(P5, [point(3 << 28, 430.0)]) == ()


def test_a_row_of_the_best_of_a_sweep_speaks_of_the_best_point() -> None:
    node = Hardware("NVIDIA H100 80GB HBM3", 4, 1, "nvlink")
    found = fitting(node, [point(1 << 20, 40.0), point(1 << 30, 365.0)])
    assert [(row.busbw_gb_s, best.busbw_gb_s) for row, best in found] == [(367.2, 365.0)]


def test_models_are_told_apart() -> None:
    assert is_model("A100 SXM4", "NVIDIA A100-SXM4-40GB")
    assert is_model("A100 PCIe", "NVIDIA A100-PCIE-40GB")
    assert not is_model("A100", "NVIDIA A100-PCIE-40GB")
    assert not is_model("H100", "NVIDIA H100 NVL")
    assert not is_model("B200", "NVIDIA GB200")
    assert is_model("RTX 4090", "NVIDIA GeForce RTX 4090")
