"""The RDMA ports, the PCI bus and the kernel of a healthy node: eight GPUs, each below a switch with its own NIC."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from ncclcheck.model.fact import Fact
from ncclcheck.model.hardware import Kernel, Pci, PciDevice, PortCounters, Rdma, RdmaCounters, RdmaPort
from ncclcheck.model.snapshot import Snapshot
from tests.builders import cluster, everywhere, node, with_facts
from tests.fact_builders import some
from tests.nccl.hardware import bus, gid, gpu, port, rdma
from tests.nccl.hardware import device as pci_device
from tests.policies import MET, with_policy

RAILS = 8
PEER_MEMORY = "/sys/module/nvidia_peermem/version"


def root_of(rail: int) -> str:
    """The root port of a rail."""
    return f"0000:{0x10 + rail * 0x10:02x}:01.0"


def switch_of(rail: int) -> str:
    """The upstream port of the switch of a rail."""
    return f"0000:{0x11 + rail * 0x10:02x}:00.0"


def nic_of(rail: int) -> str:
    """The PCI address of the NIC of a rail."""
    return f"0000:{0x13 + rail * 0x10:02x}:00.0"


def gpu_of(rail: int) -> str:
    """The PCI address of the GPU of a rail."""
    return f"0000:{0x14 + rail * 0x10:02x}:00.0"


def above_nic(rail: int) -> tuple[str, str, str]:
    """The bridges above the NIC: root port, the switch's upstream port, its downstream port."""
    return root_of(rail), switch_of(rail), f"0000:{0x12 + rail * 0x10:02x}:00.0"


def above_gpu(rail: int) -> tuple[str, str, str]:
    """The bridges above the GPU."""
    return root_of(rail), switch_of(rail), f"0000:{0x12 + rail * 0x10:02x}:01.0"


def healthy_pci() -> Pci:
    """The bus: every link is as wide and fast as it can be, and no bridge redirects."""
    nics = [pci_device(nic_of(rail), *above_nic(rail)) for rail in range(RAILS)]
    gpus = [gpu(gpu_of(rail), *above_gpu(rail)) for rail in range(RAILS)]
    return bus(*nics, *gpus)


def ib_ports() -> tuple[RdmaPort, ...]:
    """One NDR port per rail."""
    return tuple(port(f"mlx5_{rail}", pci=nic_of(rail), lid=rail + 1) for rail in range(RAILS))


def roce_ports(node_rank: int = 0) -> tuple[RdmaPort, ...]:
    """One RoCE port per rail, with the node's address in the rail's subnet: 10.1.RAIL.NODE."""
    return tuple(
        replace(
            ib_port,
            link_layer="Ethernet",
            lid=0,
            gids=tuple(
                gid(index, text, kind)
                for index, (text, kind) in enumerate(
                    (
                        ("fe80:0000:0000:0000:a288:c2ff:fe10:0020", "v1"),
                        ("fe80:0000:0000:0000:a288:c2ff:fe10:0020", "v2"),
                        (f"10.1.{rail}.{node_rank + 1}", "v1"),
                        (f"10.1.{rail}.{node_rank + 1}", "v2"),
                    )
                )
            ),
        )
        for rail, ib_port in enumerate(ib_ports())
    )


def healthy_rdma(*ports: RdmaPort) -> Rdma:
    """Those ports (none: eight of InfiniBand) with device files, libibverbs and a peer-memory module."""
    return rdma(*(ports or ib_ports()), peer_memory=(PEER_MEMORY,))


def healthy_kernel() -> Kernel:
    """Bare metal with NVIDIA's open modules."""
    return Kernel(
        ("ib_core", "mlx5_core", "nvidia", "nvidia_peermem"),
        "6.8.0-45-generic",
        nvidia_open=True,
        virtual_machine=False,
    )


NO_ERRORS: dict[str, Fact[int]] = {
    "symbol_error": 0,
    "link_downed": 0,
    "port_rcv_errors": 0,
    "out_of_sequence": 0,
}


def healthy_counters(*ports: RdmaPort) -> RdmaCounters:
    """Both readings of those ports (none: eight of InfiniBand), without an error."""
    return RdmaCounters(
        tuple(
            PortCounters(rdma_port.device, rdma_port.port, NO_ERRORS, NO_ERRORS)
            for rdma_port in ports or ib_ports()
        )
    )


def with_hardware(snapshot: Snapshot) -> Snapshot:
    """The snapshot in which every node has that hardware, and the driver lists the GPUs that are on the bus."""
    for listed in snapshot.nodes:
        gpus = tuple(replace(gpu, pci=gpu_of(gpu.index)) for gpu in some(listed.facts.gpus))
        snapshot = with_facts(snapshot, listed.host, gpus=gpus)
    return everywhere(
        snapshot,
        rdma=healthy_rdma(),
        pci=healthy_pci(),
        kernel=healthy_kernel(),
        rdma_counters=healthy_counters(),
    )


def rdma_cluster(nnodes: int = 4) -> Snapshot:
    """A healthy cluster of InfiniBand nodes, and a policy that it meets."""
    return with_policy(with_hardware(cluster(nnodes)), MET)


def roce_cluster(nnodes: int = 4) -> Snapshot:
    """A healthy cluster of RoCE nodes, one subnet per rail."""
    snapshot = rdma_cluster(nnodes)
    for listed in snapshot.nodes:
        snapshot = with_facts(snapshot, listed.host, rdma=healthy_rdma(*roce_ports(listed.node_rank)))
    return snapshot


def with_rdma(snapshot: Snapshot, host: str, **changes: Any) -> Snapshot:
    """The snapshot in which the RDMA section of a host says something else."""
    return with_facts(snapshot, host, rdma=replace(some(node(snapshot, host).facts.rdma), **changes))


def with_port(snapshot: Snapshot, host: str, device: str, **changes: Any) -> Snapshot:
    """The snapshot in which every port of one device of a host is different."""
    section = some(node(snapshot, host).facts.rdma)
    assert device in {rdma_port.device for rdma_port in section.ports}, device
    return with_rdma(
        snapshot,
        host,
        ports=tuple(
            replace(rdma_port, **changes) if rdma_port.device == device else rdma_port
            for rdma_port in section.ports
        ),
    )


def with_ports(snapshot: Snapshot, host: str, *ports: RdmaPort) -> Snapshot:
    """The snapshot in which a host has those ports, with a device file for each."""
    return with_facts(snapshot, host, rdma=healthy_rdma(*ports))


def with_device(snapshot: Snapshot, host: str, address: str, **changes: Any) -> Snapshot:
    """The snapshot in which one PCI device of a host is different."""
    section = some(node(snapshot, host).facts.pci)
    assert address in {device.address for device in section.devices}, address
    return with_devices(
        snapshot, host, lambda device: replace(device, **changes) if device.address == address else device
    )


def with_devices(snapshot: Snapshot, host: str, change: Callable[[PciDevice], PciDevice]) -> Snapshot:
    """The snapshot in which every PCI device of a host went through `change`."""
    section = some(node(snapshot, host).facts.pci)
    return with_facts(snapshot, host, pci=Pci(tuple(change(device) for device in section.devices)))
