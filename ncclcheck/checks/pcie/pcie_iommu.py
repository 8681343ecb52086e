"""NC412 pcie-iommu."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.hosts import named, not_reported, verb
from ncclcheck.checks.pcie._driver_links import unknown_places
from ncclcheck.checks.pcie_path import Path, paths, unplaced
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.facts import NodeFacts
from ncclcheck.model.finding import Evidence, Finding, Fix, NotApplicable, NotKnown
from ncclcheck.model.formats.prose import listed
from ncclcheck.model.hardware import Pci
from ncclcheck.model.snapshot import Node, Snapshot

_MOST_EVIDENCE = 16
_TRANSLATED = ("DMA", "DMA-FQ", "DMA-SQ")
_TWO = 2  # a GPU and a NIC, or two GPUs
# Linux on these builds reads and writes of GPUs on translated addresses: the SMMU is part of the design.
_BY_DESIGN = ("aarch64", "arm64")


@check(
    "NC412",
    "pcie-iommu",
    "No IOMMU translates the traffic between GPUs and NICs",
    needs=("pci",),
    alike=("kernel", "pci", "rdma", "software"),
    by_node=True,
)
def pcie_iommu(snapshot: Snapshot) -> Iterator[Answer]:
    """On bare metal with x86 the IOMMU is off for GPUs and RDMA NICs, or passes their accesses through (iommu=pt).

    Virtual machines are not judged: they need the IOMMU of their host, and an IOMMU of their own is their
    administrator's decision. Nor are Arm machines such as Grace, whose SMMU is part of the design, and nodes with one
    GPU and no RDMA NIC, which have no peer traffic.

    ## Why it matters
    With translation every access between two PCIe devices goes up to the root complex, instead of through the switch
    that they share: GPUDirect RDMA and GPU peer-to-peer get a fraction of the bandwidth, and on some machines hang or
    move wrong data.

    ## How to fix
    Boot with `iommu=pt` (and `intel_iommu=on` or `amd_iommu=on` if it must stay on), or switch VT-d or AMD-Vi off in
    the BIOS. Keep translation where untrusted virtual machines or devices share the host.

    ## Source
    /sys/bus/pci/devices/*/iommu_group/type (Linux, Documentation/ABI/testing/sysfs-kernel-iommu_groups, from 5.11 on);
    NVIDIA NCCL user guide, troubleshooting, "PCI Access Control Services (ACS)", on IO virtualization.
    """
    translated: dict[tuple[Path, ...], list[str]] = {}
    judged = False
    excused: list[str] = []
    for node, pci in snapshot.known("pci"):
        found = paths(pci, node.facts.rdma)
        yield from _unplaced(node, pci)
        yield from unknown_places(node)
        if len(found) < _TWO or not any(path.is_gpu for path in found):
            continue
        why = _excuse(node.facts)
        if isinstance(why, Missing):
            yield NotKnown(f"whether this is a virtual machine: {why}", (node.host,))
        elif why:
            excused.append(f"{node.host} {why}")
        else:
            judged = True
            yield from _unknown(node, found)
            if on := tuple(path for path in found if _is_translated(path)):
                translated.setdefault(on, []).append(node.host)
    for on, hosts in translated.items():
        yield _finding(on, tuple(hosts))
    if not judged and any(True for _ in snapshot.known("pci")):
        yield NotApplicable("; ".join(excused) or "no GPU shares a PCIe bus with an RDMA NIC or another GPU")
    yield from not_reported(snapshot)


def _unplaced(node: Node, pci: Pci) -> Iterator[NotKnown]:
    """RDMA devices of which it is not known which cards they are."""
    if isinstance(node.facts.rdma, Missing):
        yield NotKnown(f"which cards have RDMA devices: {node.facts.rdma}", (node.host,))
    elif lost := unplaced(pci, node.facts.rdma):
        yield NotKnown(f"where {listed(lost)} {verb(lost, 'is', 'are')} on the PCI bus", (node.host,))


def _unknown(node: Node, found: tuple[Path, ...]) -> Iterator[NotKnown]:
    unknown = [path for path in found if isinstance(path.device.iommu, Missing)]
    if unknown:
        labels = listed(path.label for path in unknown)
        yield NotKnown(f"IOMMU of {labels}: {unknown[0].device.iommu}", (node.host,))


def _excuse(facts: NodeFacts) -> Fact[str]:
    """Why translation is right on this node; empty where it is not."""
    if not isinstance(facts.software, Missing) and facts.software.machine in _BY_DESIGN:
        return "is an Arm machine, whose SMMU translates by design"
    virtual = facts.kernel if isinstance(facts.kernel, Missing) else facts.kernel.virtual_machine
    if isinstance(virtual, Missing):
        return virtual
    return "is a virtual machine" if virtual else ""


def _is_translated(path: Path) -> bool:
    return path.device.iommu in _TRANSLATED


def _finding(on: tuple[Path, ...], hosts: tuple[str, ...]) -> Finding:
    labels = [path.label for path in on]
    return Finding(
        "warning",
        f"the IOMMU of {named(hosts)} translates the accesses of {listed(labels, 4)}: traffic between "
        f"{verb(labels, 'it', 'them')} and other devices goes through the CPU, and GPUDirect gets a fraction of the "
        "bandwidth",
        hosts,
        tuple(
            Evidence(
                hosts,
                f"IOMMU domain of {path.label}",
                str(path.device.iommu),
                "identity, or none",
                f"/sys/bus/pci/devices/{path.device.address}/iommu_group/type",
            )
            for path in on[:_MOST_EVIDENCE]
        ),
        (
            Fix(
                "boot with iommu=pt, or switch VT-d or AMD-Vi off in the BIOS",
                ("cat /proc/cmdline", "sudo dmesg | grep -i -e DMAR -e AMD-Vi -e iommu"),
                risk="devices can then access each other's memory",
            ),
        ),
    )
