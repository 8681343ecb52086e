"""How far GPUs and network cards are from each other on the PCI bus, in NCCL's classes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from msgspec import Struct

from ncclcheck.model.fact import Missing
from ncclcheck.model.formats.same_object import SameObject
from ncclcheck.model.hardware import GpuNic, Pci, PciDevice, RdmaPort

PATHS = ("PIX", "PXB", "PHB", "SYS")  # from near to far
BELOW_SWITCHES = PATHS[:2]  # not through a CPU
_BDF = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]", re.ASCII | re.IGNORECASE)
_GPU_CLASSES = ("0x0300", "0x0302")
_NVIDIA = "0x10de"
TOPOLOGY_FILE = "NCCL_TOPO_FILE"
_NO_NODE = -1  # NUMA_NO_NODE of linux/numa.h


class Position(Struct, frozen=True):
    """Where a device sits as NCCL sees it: the switches above it, the nearest first, and the NUMA node on top.

    `numa_node` is None where it could not be read, and -1 where the machine names none.
    """

    switches: tuple[str, ...]
    numa_node: int | None


def positions(pci: Pci) -> dict[str, Position]:
    """Return the position of each PCI device, by address.

    NCCL walks the resolved path upwards two levels at a time, since a switch is two bridges, its upper and its lower
    port; it ends where the next level up is no PCI device, and takes the NUMA node of the last one it stood on. NCCL
    src/graph/xml.cc (ncclTopoGetXmlFromSys), 2.18 to 2.30. Broadcom PEX switches that show themselves as two levels
    in base mode are seen by NCCL as one (ncclTopoFlattenBcmSwitches); facts do not tell that mode.
    """
    return _positions(SameObject(pci))


@lru_cache(maxsize=256)
def _positions(bus: SameObject[Pci]) -> dict[str, Position]:
    by_address = {device.address: device for device in bus.value.devices}
    return {device.address: _position(device, by_address) for device in bus.value.devices}


def _position(device: PciDevice, by_address: Mapping[str, PciDevice]) -> Position:
    above = list(device.upstream)
    switches = []
    while len(above) > 1 and _BDF.fullmatch(above[-1]) and _BDF.fullmatch(above[-2]):
        switches.append(above[-2])
        above = above[:-2]
    top = by_address.get(switches[-1], device) if switches else device
    node = device.numa_node if isinstance(top.numa_node, Missing) else top.numa_node
    if isinstance(node, Missing):
        return Position(tuple(switches), _NO_NODE if node.missing == "absent" else None)
    return Position(tuple(switches), node)


def distance(first: Position, second: Position) -> str | None:
    """PIX below one switch, PXB over several, PHB within a NUMA node, else SYS; None where that is not known.

    NCCL src/graph/paths.cc (ncclTopoSetPaths). Where no device has a NUMA node, all are at one; where only one of the
    two has none, that of the other says nothing about it.
    """
    shared = next((switch for switch in first.switches if switch in second.switches), None)
    if shared is not None:
        between = first.switches.index(shared) + second.switches.index(shared) + 1
        return "PIX" if between == 1 else "PXB"
    nodes = {first.numa_node, second.numa_node}
    if None in nodes or (len(nodes) > 1 and _NO_NODE in nodes):
        return None
    return "PHB" if len(nodes) == 1 else "SYS"


def gpu_addresses(pci: Pci) -> tuple[str, ...]:
    """NVIDIA's display and 3D controllers, which are its GPUs."""
    return tuple(
        device.address
        for device in pci.devices
        if device.vendor == _NVIDIA
        and isinstance(device.class_code, str)
        and device.class_code[:6] in _GPU_CLASSES
    )


def nic_position(port: RdmaPort, by_address: Mapping[str, Position]) -> Position | None:
    """Where NCCL puts the card of a port; None where its PCI address was not read.

    NET/IB writes 0 for the function, and for the device number unless NCCL_IB_MERGE_VFS=0, so second functions and
    virtual functions sit where the card sits.
    """
    if isinstance(port.pci, Missing):
        return None
    return by_address.get(card_of(port.pci)) or by_address.get(port.pci)


def card_of(address: str, *, merge_virtual_functions: bool = True) -> str:
    """Return the PCI address that NET/IB uses for the card of `address` (ncclIbGetPciPath)."""
    if not _BDF.fullmatch(address):
        return address
    return address[:-4] + "00.0" if merge_virtual_functions else address[:-1] + "0"


def file_before_sys(pci: Pci, environment: Mapping[str, str]) -> str:
    """Return the file from which NCCL takes the PCI bus before it looks at /sys; empty where there is none.

    /sys adds only the devices that the file leaves out. NCCL src/graph/topo.cc (ncclTopoGetSystem), 2.18 to 2.30.
    """
    return environment.get(TOPOLOGY_FILE, pci.topology_file)


def gpu_nic(pci: Pci, ports: Sequence[RdmaPort]) -> tuple[GpuNic, ...]:
    """Return the class of each pair of a GPU and an RDMA device whose class is known."""
    places = positions(pci)
    cards = {port.device: nic_position(port, places) for port in ports}
    found = []
    for gpu in gpu_addresses(pci):
        for nic, place in cards.items():
            path = distance(places[gpu], place) if place else None
            if path is not None:
                found.append(GpuNic(gpu, nic, path))
    return tuple(found)
