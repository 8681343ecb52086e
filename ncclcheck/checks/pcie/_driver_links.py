"""The PCIe links of GPUs as the driver reports them, for machines whose /sys has no entries for the GPUs."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from ncclcheck.checks.gpus import label
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.facts import Gpu, NodeFacts
from ncclcheck.model.finding import NotKnown
from ncclcheck.model.formats.prose import listed
from ncclcheck.model.hardware import Pci, PciDevice
from ncclcheck.model.snapshot import Node
from ncclcheck.nccl.gpus.job_gpus import gpus_without_nvml
from ncclcheck.nccl.topology import gpu_addresses

SOURCE = "NVML, nvmlDeviceGetCurrPcieLink* and nvmlDeviceGetMaxPcieLink*"
# Gigatransfers per second of each PCIe generation (PCI Express Base Specification 6.0, table of data rates).
_GT_S = {1: 2.5, 2: 5.0, 3: 8.0, 4: 16.0, 5: 32.0, 6: 64.0}
_NOT_IN_SYS = Missing("absent", "/sys has no entry for this GPU")


def unknown_places(node: Node) -> Iterator[NotKnown]:
    """GPUs that are there, or may be, of which /sys does not tell where on the bus they are."""
    facts = node.facts
    if why := unread_gpus(facts):
        yield NotKnown(f"where its GPUs are on the PCI bus: {why}", (node.host,))
    elif not isinstance(facts.pci, Missing) and not gpu_addresses(facts.pci):
        names = () if isinstance(facts.gpus, Missing) else tuple(label(gpu) for gpu in facts.gpus)
        if names:
            yield NotKnown(
                f"where {listed(names, 3)} are on the PCI bus, since /sys has no GPU", (node.host,)
            )


def unread_gpus(facts: NodeFacts) -> str:
    """Return why GPUs that may be there were not read; empty where the bus lists them, or there is none."""
    on_bus = 0 if isinstance(facts.pci, Missing) else len(gpu_addresses(facts.pci))
    if gpus_without_nvml(facts) > on_bus:  # torch sees more than /sys has
        return str(facts.gpus)
    if isinstance(facts.pci, Missing) or gpu_addresses(facts.pci) or not isinstance(facts.gpus, Missing):
        return ""
    return "" if facts.gpus.missing == "absent" else str(facts.gpus)


def links_of_driver(facts: NodeFacts) -> Pci:
    """Return the GPUs that /sys/bus/pci lacks as devices of it, with the links that NVML reports."""
    if isinstance(facts.gpus, Missing):
        return Pci(())
    pci = facts.pci
    known = set() if isinstance(pci, Missing) else {device.address for device in pci.devices}
    return Pci(tuple(_device(gpu) for gpu in facts.gpus if isinstance(gpu.pci, str) and gpu.pci not in known))


def _device(gpu: Gpu) -> PciDevice:
    state = gpu.state
    return PciDevice(
        address=str(gpu.pci),
        vendor="0x10de",
        device=_NOT_IN_SYS,
        class_code="0x030200",
        numa_node=_NOT_IN_SYS,
        driver="nvidia",
        link_speed_gt_s=_gt_s(state.pcie_generation),
        link_width=state.pcie_width,
        max_link_speed_gt_s=_gt_s(state.max_pcie_generation),
        max_link_width=state.max_pcie_width,
        acs_redirect=_NOT_IN_SYS,
    )


def _gt_s(generation: Fact[int]) -> Fact[float]:
    if isinstance(generation, Missing):
        return generation
    return _GT_S.get(generation) or Missing("error", f"PCIe generation {generation} is not known")


def with_links_of_driver(facts: NodeFacts) -> Pci:
    """Return the PCI bus as /sys has it, with the GPUs that only the driver knows."""
    added = links_of_driver(facts)
    return (
        added
        if isinstance(facts.pci, Missing)
        else replace(facts.pci, devices=facts.pci.devices + added.devices)
    )
