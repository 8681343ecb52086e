"""NC410 pcie-degraded."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ncclcheck.model.fact import Missing
from ncclcheck.model.hardware import Pci, PciDevice, Rdma
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.nccl.topology import gpu_addresses
from tests.builders import everywhere, node, without
from tests.checks.running import finding, is_silent, run
from tests.fact_builders import some
from tests.hardware_builders import (
    above_gpu,
    above_nic,
    gpu_of,
    healthy_kernel,
    nic_of,
    rdma_cluster,
    root_of,
    switch_of,
    with_device,
    with_port,
)
from tests.nccl.hardware import UNREAD

SLUG = "pcie-degraded"
NO_DRIVER = Missing("absent", "no NVIDIA driver")


def test_a_nic_at_half_the_lanes_is_named() -> None:
    found = finding(SLUG, with_device(rdma_cluster(3), "node02", nic_of(2), link_width=8))
    assert (found.severity, found.hosts) == ("warning", ("node02",))
    assert f"mlx5_2 ({nic_of(2)}) on node02 runs at x8 where its path allows x16" in found.summary
    assert "50 %" in found.summary
    assert found.evidence[0].source == f"/sys/bus/pci/devices/{nic_of(2)}/current_link_width"


def test_both_ends_of_a_link_tell_of_it_and_it_is_told_once() -> None:
    snapshot = with_device(rdma_cluster(1), "node01", nic_of(2), link_width=8)
    snapshot = with_device(snapshot, "node01", above_nic(2)[2], link_width=8)
    assert f"mlx5_2 ({nic_of(2)})" in finding(SLUG, snapshot).summary


def test_a_gpu_at_fewer_lanes_is_named_by_its_address() -> None:
    found = finding(SLUG, with_device(rdma_cluster(1), "node01", gpu_of(5), link_width=4))
    assert f"GPU {gpu_of(5)}" in found.summary


def test_a_switch_that_is_linked_slower_than_all_below_it_is_named_with_them() -> None:
    snapshot = with_device(rdma_cluster(1), "node01", switch_of(3), link_speed_gt_s=8.0)
    snapshot = with_device(snapshot, "node01", root_of(3), link_speed_gt_s=8.0)
    found = finding(SLUG, snapshot)
    assert f"bridge {switch_of(3)}" in found.summary
    assert gpu_of(3) in found.summary
    assert "mlx5_3" in found.summary
    assert "8.0 GT/s where its path allows 32 GT/s" in found.summary


def test_a_slot_that_can_do_no_more_is_fine() -> None:
    snapshot = with_device(rdma_cluster(1), "node01", nic_of(2), link_width=8, link_speed_gt_s=16.0)
    snapshot = with_device(
        snapshot,
        "node01",
        above_nic(2)[2],
        link_width=8,
        max_link_width=8,
        link_speed_gt_s=16.0,
        max_link_speed_gt_s=16.0,
    )
    assert is_silent(SLUG, snapshot)


def idle(snapshot: Snapshot, host: str, rail: int) -> Snapshot:
    snapshot = with_device(snapshot, host, gpu_of(rail), link_speed_gt_s=2.5)
    return with_device(snapshot, host, above_gpu(rail)[2], link_speed_gt_s=2.5)


def test_an_idle_gpu_is_only_mentioned_and_a_slow_nic_is_not_excused() -> None:
    found = finding(SLUG, idle(rdma_cluster(2), "node02", 1))
    assert (found.severity, found.hosts) == ("info", ("node02",))
    assert "idle" in found.summary
    nic = finding(SLUG, with_device(rdma_cluster(2), "node02", nic_of(1), link_speed_gt_s=2.5))
    assert nic.severity == "warning"


def test_emulated_bridges_of_a_virtual_machine_do_not_count() -> None:
    snapshot = with_device(rdma_cluster(1), "node01", root_of(0), link_width=1)
    assert finding(SLUG, snapshot).severity == "warning"
    assert is_silent(SLUG, everywhere(snapshot, kernel=replace(healthy_kernel(), virtual_machine=True)))


def test_the_same_fault_on_many_nodes_is_told_once() -> None:
    snapshot = rdma_cluster(3)
    for place in snapshot.nodes:
        snapshot = with_device(snapshot, place.host, nic_of(0), link_width=8)
    assert finding(SLUG, snapshot).hosts == ("node01", "node02", "node03")


def test_what_was_not_read_is_unknown() -> None:
    for changes in ({"link_width": UNREAD}, {"max_link_width": UNREAD}, {"link_speed_gt_s": UNREAD}):
        result = run(SLUG, with_device(rdma_cluster(2), "node02", nic_of(4), **changes))
        assert (result.outcome, "mlx5_4" in result.reason) == ("unknown", True)
    assert (
        run(SLUG, with_device(rdma_cluster(2), "node02", gpu_of(4), link_width=UNREAD)).outcome == "unknown"
    )
    assert run(SLUG, without(rdma_cluster(2), "node02", "rdma")).outcome == "unknown"
    lost = run(SLUG, with_port(rdma_cluster(2), "node02", "mlx5_6", pci=UNREAD))
    assert (lost.outcome, "where mlx5_6 is on the PCI bus" in lost.reason) == ("unknown", True)


def test_a_machine_with_neither_is_not_applicable() -> None:
    empty = everywhere(rdma_cluster(2), pci=Pci(()), rdma=Rdma((), (), ()), gpus=NO_DRIVER)
    assert run(SLUG, everywhere(empty, torch_gpus=NO_DRIVER)).outcome == "not_applicable"


@pytest.mark.parametrize("has_nics", [False, True])
def test_gpus_that_only_torch_sees_are_unknown_and_never_passed(has_nics: bool) -> None:
    """A container without libnvidia-ml, and no GPU in its /sys: the NICs' links say nothing of the GPUs'."""
    cards = {} if has_nics else {"rdma": Rdma((), (), ())}
    hidden = everywhere(
        rdma_cluster(2), pci=Pci(nics_of_the_bus() if has_nics else ()), gpus=NO_DRIVER, **cards
    )
    result = run(SLUG, hidden)
    assert (result.outcome, "node01: the PCIe links of its GPUs" in result.reason) == ("unknown", True)


def nics_of_the_bus() -> tuple[PciDevice, ...]:
    pci = some(node(rdma_cluster(1), "node01").facts.pci)
    gpus = set(gpu_addresses(pci))
    return tuple(device for device in pci.devices if device.address not in gpus)
