"""NC411 pcie-acs."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.model.fact import Missing
from ncclcheck.model.hardware import Pci
from ncclcheck.model.snapshot import Snapshot
from tests.builders import everywhere, without
from tests.checks.running import finding, is_silent, run
from tests.hardware_builders import (
    above_gpu,
    above_nic,
    gpu_of,
    healthy_kernel,
    healthy_rdma,
    ib_ports,
    nic_of,
    rdma_cluster,
    root_of,
    with_device,
    with_devices,
)
from tests.nccl.hardware import bus, device, gpu

SLUG = "pcie-acs"
DENIED = Missing("denied", "/sys/bus/pci/devices/x/config: 64 bytes")


def redirecting(nnodes: int = 3) -> Snapshot:
    return with_device(rdma_cluster(nnodes), "node02", above_gpu(4)[2], acs_redirect=True)


def test_a_port_between_a_gpu_and_its_nic_is_named_with_the_command() -> None:
    found = finding(SLUG, redirecting())
    assert (found.severity, found.hosts) == ("warning", ("node02",))
    assert above_gpu(4)[2] in found.summary
    assert gpu_of(4) in found.summary
    assert found.fixes[0].commands == (f"sudo setpci -s {above_gpu(4)[2]} ECAP_ACS+0x6.w=0000",)
    assert found.evidence[0].source.endswith(f"{above_gpu(4)[2]}/config")


def test_a_root_port_above_the_switch_does_not_matter() -> None:
    assert is_silent(SLUG, with_device(rdma_cluster(2), "node01", root_of(0), acs_redirect=True))


def test_a_virtual_machine_keeps_it_on() -> None:
    virtual = everywhere(redirecting(), kernel=replace(healthy_kernel(), virtual_machine=True))
    result = run(SLUG, virtual)
    assert (result.outcome, "virtual machine" in result.reason) == ("not_applicable", True)


def test_where_the_context_is_not_known_the_finding_says_so() -> None:
    assert "is not known" in finding(SLUG, without(redirecting(), "node02", "kernel")).summary


def test_what_only_root_can_read_is_unknown() -> None:
    snapshot = with_devices(
        rdma_cluster(2), "node01", lambda pci_device: replace(pci_device, acs_redirect=DENIED)
    )
    result = run(SLUG, snapshot)
    assert (result.outcome, "only root can read it" in result.reason) == ("unknown", True)
    one_port = with_device(rdma_cluster(2), "node01", above_nic(3)[2], acs_redirect=DENIED)
    assert above_nic(3)[2] in run(SLUG, one_port).reason


def test_devices_that_share_no_switch_are_not_applicable() -> None:
    flat = bus(gpu(gpu_of(0), root_of(0)), device(nic_of(1), root_of(1)))
    snapshot = everywhere(rdma_cluster(2), pci=flat, rdma=healthy_rdma(ib_ports()[1]))
    assert run(SLUG, snapshot).outcome == "not_applicable"
    lost = run(SLUG, everywhere(rdma_cluster(2), pci=Pci(())))
    assert (lost.outcome, "mlx5_0" in lost.reason) == ("unknown", True)


def test_without_the_rdma_devices_it_is_unknown() -> None:
    assert run(SLUG, without(rdma_cluster(2), "node01", "rdma")).outcome == "unknown"
