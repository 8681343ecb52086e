"""RDMA ports, GIDs and PCI devices as a healthy machine has them, and small ways to change them."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from ncclcheck.model.fact import Missing
from ncclcheck.model.hardware import Gid, Pci, PciDevice, Rdma, RdmaPort

UNREAD = Missing("absent", "not read")
NO_LIBRARY = Missing("absent", "the loader finds no libibverbs.so.1")
LINK_LOCAL = "fe80:0000:0000:0000:a288:c2ff:fe10:0020"


def gid(index: int, address: str, kind: str | Missing = "RoCE v2") -> Gid:
    """One entry; an IPv4 address is written v4-mapped, as the kernel does. `kind` v1, v2 or the whole word."""
    if "." in address:
        a, b, c, d = (int(part) for part in address.split("."))
        address = f"0000:0000:0000:0000:0000:ffff:{a:02x}{b:02x}:{c:02x}{d:02x}"
    words = {"v1": "IB/RoCE v1", "v2": "RoCE v2"}
    return Gid(index, address, words.get(kind, kind) if isinstance(kind, str) else kind, "eth0")


ROCE_GIDS = (gid(0, LINK_LOCAL, "v1"), gid(1, LINK_LOCAL), gid(2, "10.0.0.1", "v1"), gid(3, "10.0.0.1"))


def port(device: str = "mlx5_0", number: int = 1, **changes: Any) -> RdmaPort:
    """An ACTIVE InfiniBand port on a card of its own."""
    index = int(device.rpartition("_")[2])
    healthy = RdmaPort(
        device=device,
        port=number,
        link_layer="InfiniBand",
        state="ACTIVE",
        phys_state="LinkUp",
        rate_gbps=400.0,
        width="4X",
        speed="NDR",
        lid=7,
        active_mtu=4096,
        pci=f"0000:{0x10 + index:02x}:00.0",
        numa_node=0,
        firmware="28.39.1002",
        board_id="MT_0000000838",
        hca_type="MT4129",
        node_guid="a088:c203:0010:0020",
        driver="mlx5_core",
        uverbs=f"uverbs{index}",
        gids=(Gid(0, LINK_LOCAL, "IB/RoCE v1", UNREAD),),
        gid_table_length=16,
    )
    return replace(healthy, **changes)


def roce(device: str = "mlx5_0", number: int = 1, **changes: Any) -> RdmaPort:
    """An ACTIVE RoCE port: link-local entries first, then IPv4 as v1 and v2."""
    return port(device, number, **{"link_layer": "Ethernet", "gids": ROCE_GIDS, **changes})


def rdma(*ports: RdmaPort, **changes: Any) -> Rdma:
    """A node with those ports, its device files and libibverbs."""
    files = tuple(rdma_port.uverbs for rdma_port in ports if isinstance(rdma_port.uverbs, str))
    return replace(Rdma(ports, files, (), (), "libibverbs.so.1"), **changes)


def device(address: str, *upstream: str, **changes: Any) -> PciDevice:
    """A PCI device at NUMA node 0 below those bridges, from the root port down."""
    healthy = PciDevice(
        address=address,
        vendor="0x15b3",
        device="0x1021",
        class_code="0x020700",
        numa_node=0,
        driver="mlx5_core",
        link_speed_gt_s=32.0,
        link_width=16,
        max_link_speed_gt_s=32.0,
        max_link_width=16,
        acs_redirect=False,
        upstream=upstream,
        iommu="identity",
    )
    return replace(healthy, **changes)


def gpu(address: str, *upstream: str, **changes: Any) -> PciDevice:
    """A GPU below those bridges."""
    card = device(address, *upstream, vendor="0x10de", device="0x2330", class_code="0x030200")
    return replace(card, **changes)


def bus(*devices: PciDevice) -> Pci:
    """The PCI bus, with a bridge for every address that stands above a device and is not listed."""
    listed = {pci_device.address for pci_device in devices}
    bridges = {
        above: device(
            above, *pci_device.upstream[:depth], class_code="0x060400", numa_node=pci_device.numa_node
        )
        for pci_device in devices
        for depth, above in enumerate(pci_device.upstream)
        if above not in listed
    }
    return Pci((*bridges.values(), *devices))
