"""The PCIe links between a GPU or NIC and the root of the bus, and what each of them could do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.hardware import Pci, PciDevice, Rdma, RdmaPort
from ncclcheck.nccl import topology


class Path(Struct, frozen=True):
    """A GPU or RDMA NIC with the bridges above it, from the root port down, as far as they were read."""

    device: PciDevice
    names: tuple[str, ...]  # "GPU", or the RDMA devices
    bridges: tuple[PciDevice, ...]

    @property
    def is_gpu(self) -> bool:
        """True for a GPU, whose link slows down while it is idle."""
        return self.names == ("GPU",)

    @property
    def label(self) -> str:
        """`GPU 0000:1b:00.0`, `mlx5_0 (0000:18:00.0)`."""
        if self.is_gpu:
            return f"GPU {self.device.address}"
        return f"{'+'.join(self.names)} ({self.device.address})"

    @property
    def hops(self) -> tuple[PciDevice, ...]:
        """The device and its bridges; the two ends of a link both tell of it."""
        return (*self.bridges, self.device)


def paths(pci: Pci, rdma: Fact[Rdma]) -> tuple[Path, ...]:
    """One path per GPU and per card with RDMA devices; a virtual function stands for its card, whose link it is."""
    by_address = {device.address: device for device in pci.devices}
    names: dict[str, tuple[str, ...]] = dict.fromkeys(topology.gpu_addresses(pci), ("GPU",))
    for port in () if isinstance(rdma, Missing) else rdma.ports:
        place = _place_of(port, by_address)
        if place is not None:
            names[place] = tuple(dict.fromkeys((*names.get(place, ()), port.device)))
    return tuple(
        Path(
            by_address[address],
            members,
            tuple(by_address[above] for above in by_address[address].upstream if above in by_address),
        )
        for address, members in names.items()
    )


def unplaced(pci: Pci, rdma: Fact[Rdma]) -> tuple[str, ...]:
    """Return the RDMA devices that were not found on the PCI bus, so that their link is not known."""
    by_address = {device.address: device for device in pci.devices}
    ports = () if isinstance(rdma, Missing) else rdma.ports
    return tuple(dict.fromkeys(port.device for port in ports if _place_of(port, by_address) is None))


def _place_of(port: RdmaPort, by_address: Mapping[str, PciDevice]) -> str | None:
    """Return the PCI address of the card: the port's own, or the first function's for a virtual function."""
    if isinstance(port.pci, Missing) or port.pci not in by_address:
        return None
    if not by_address[port.pci].is_vf:
        return port.pci
    card = topology.card_of(port.pci)
    return card if card in by_address and not by_address[card].is_vf else None


def least(values: Iterable[Fact[float]]) -> float | None:
    """Return the smallest of the values that were read."""
    return min((value for value in values if not isinstance(value, Missing)), default=None)
