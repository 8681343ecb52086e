"""NC408 gpu-differs."""

from __future__ import annotations

import re

import pytest

from ncclcheck.model.fact import Missing
from ncclcheck.model.snapshot import Snapshot
from tests.builders import cluster
from tests.checks.running import finding, is_silent, run
from tests.fact_builders import GONE
from tests.gpu_builders import with_all_gpus, with_gpu


def on_node(snapshot: Snapshot, host: str, **changes: object) -> Snapshot:
    for index in range(8):
        snapshot = with_gpu(snapshot, host, index, **changes)
    return snapshot


def test_equal_gpus_are_silent() -> None:
    assert is_silent("gpu-differs", cluster(4))


@pytest.mark.parametrize(
    ("change", "words", "severity"),
    [
        ({"name": "NVIDIA A100-SXM4-80GB"}, "NVIDIA A100-SXM4-80GB on node03", "warning"),
        ({"memory_bytes": 40 << 30}, "40 GiB on node03", "warning"),
        ({"mig": True}, "MIG mode differs: on on node03", "warning"),
        ({"ecc": False}, "ECC mode differs: off on node03", "warning"),
        (
            {"compute_mode": "exclusive-process"},
            "compute mode differs: exclusive-process on node03",
            "warning",
        ),
        ({"persistence": False}, "persistence mode differs", "info"),
    ],
)
def test_the_odd_node_is_named(change: dict[str, object], words: str, severity: str) -> None:
    found = finding("gpu-differs", on_node(cluster(4), "node03", **change))
    assert (found.severity, found.hosts) == (severity, ("node03",))
    assert words in found.summary


def test_one_odd_gpu_on_a_node_is_told_with_numbers() -> None:
    found = finding("gpu-differs", with_gpu(cluster(4), "node03", 2, mig=True))
    assert "7 x off and 1 x on on node03" in found.summary
    assert re.search(r"\(GPU 2 \(.*\) has on, on node03\)", found.summary)


def test_of_two_nodes_the_one_with_the_odd_gpu_is_named() -> None:
    found = finding("gpu-differs", with_gpu(cluster(2), "node02", 3, memory_bytes=40 << 30))
    assert found.hosts == ("node02",)
    assert re.search(r"\(GPU 3 \(.*\) has 40 GiB, on node02\)", found.summary)
    assert "no majority" not in found.summary


def test_a_tie_is_said_to_be_one() -> None:
    found = finding("gpu-differs", on_node(cluster(2), "node02", name="NVIDIA A100"))
    assert found.hosts == ("node01", "node02")
    assert "no majority" in found.summary


def test_mixed_gpus_on_every_node_differ_too() -> None:
    assert (
        "on every node"
        in finding("gpu-differs", with_gpu(cluster(1), "node01", 2, name="NVIDIA A100")).summary
    )


def test_what_was_not_read_is_unknown_and_what_a_gpu_does_not_know_is_not_compared() -> None:
    assert run("gpu-differs", with_gpu(cluster(4), "node02", 5, ecc=GONE)).outcome == "unknown"
    assert is_silent("gpu-differs", with_all_gpus(cluster(2), ecc=Missing("unsupported", "no ECC")))
