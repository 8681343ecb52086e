"""NC702 memlock-low."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from ncclcheck.model.fact import Missing
from ncclcheck.model.hardware import Rdma, RdmaPort
from ncclcheck.model.snapshot import Snapshot
from tests.builders import cluster, everywhere, with_facts
from tests.checks.running import finding, is_silent, run
from tests.fact_builders import GONE, limits

PORT = RdmaPort("mlx5_0", 1, *(Missing("absent", "") for _ in RdmaPort.__struct_fields__[2:]))
RDMA = Rdma((PORT,), ("uverbs0",), ())


def locked(kib: Any, rdma: Any = RDMA, **changes: Any) -> Snapshot:
    return with_facts(
        everywhere(cluster(2), rdma=rdma), "node02", limits=limits(memlock_kib=kib, **changes), rdma=rdma
    )


@pytest.mark.parametrize(
    ("kib", "severity", "shown"),
    [(64, "error", "64 KiB"), (8192, "error", "8 MiB"), (262144, "warning", "256 MiB")],
)
def test_a_low_limit_beside_rdma_devices_is_named(kib: int, severity: str, shown: str) -> None:
    found = finding("memlock-low", locked(kib))
    assert (found.severity, found.hosts) == (severity, ("node02",))
    assert f"lock {shown}" in found.summary


def test_unlimited_very_large_or_with_the_capability_is_fine() -> None:
    assert is_silent("memlock-low", locked(None))
    assert is_silent("memlock-low", locked(1 << 26))
    assert is_silent("memlock-low", locked(64, capabilities=("ipc_lock",)))


def test_without_rdma_devices_it_does_not_matter() -> None:
    for rdma in (Rdma((), (), ()), Rdma((), Missing("absent", ""), ()), Rdma((PORT,), (), ())):
        assert run("memlock-low", locked(64, rdma)).outcome == "not_applicable"


@pytest.mark.parametrize(
    "snapshot",
    [locked(GONE), locked(64, GONE), locked(64, capabilities=GONE)],
)
def test_what_could_not_be_read_is_not_passed(snapshot: Snapshot) -> None:
    result = run("memlock-low", snapshot)
    assert result.outcome == "unknown"
    assert "node02" in result.reason


def test_one_node_with_devices_is_judged_though_the_other_has_none() -> None:
    mixed = with_facts(locked(64), "node01", rdma=replace(RDMA, ports=()))
    assert finding("memlock-low", mixed).hosts == ("node02",)
