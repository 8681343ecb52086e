"""NC411 pcie-acs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ncclcheck.checks.hosts import named, not_reported, verb
from ncclcheck.checks.pcie._driver_links import unknown_places
from ncclcheck.checks.pcie_path import Path, paths, unplaced
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.facts import NodeFacts
from ncclcheck.model.finding import Evidence, Finding, Fix, NotApplicable, NotKnown
from ncclcheck.model.formats.prose import listed
from ncclcheck.model.hardware import PciDevice
from ncclcheck.model.snapshot import Snapshot

_MOST_EVIDENCE = 16
_BOTH = 2  # GPU and NIC, or two GPUs


@check(
    "NC411",
    "pcie-acs",
    "PCIe switches forward traffic between GPUs and NICs directly, not through the CPU",
    needs=("pci",),
    alike=("kernel", "pci", "rdma"),
    by_node=True,
)
def pcie_acs(snapshot: Snapshot) -> Iterator[Answer]:
    """On bare metal no port of a PCIe switch with GPUs and NICs below it redirects their traffic to the root (ACS).

    ACS is a setting of each port. It matters where a GPU and a NIC, or two GPUs, are below the same switch. In a
    virtual machine the host needs ACS to isolate machines, so it is not judged; there, address translation in the NIC
    (ATS) matters. Only root can read ACS; without root the answer is unknown.

    ## Why it matters
    With ACS request redirect, GPUDirect RDMA and GPU peer-to-peer traffic goes up to the CPU and back instead of
    through the switch: a fraction of the bandwidth, and on some machines a hang.

    ## How to fix
    Switch ACS off in the BIOS (often along with the IOMMU or virtualisation), or at each boot:
    `setpci -s ADDRESS ECAP_ACS+0x6.w=0000` for every bridge that is named. Keep it on where virtual machines share the
    host.

    ## Source
    PCI Express Base Specification, Access Control Services capability (P2P Request and Completion Redirect), read from
    /sys/bus/pci/devices/*/config; NVIDIA NCCL user guide, troubleshooting, "PCI Access Control Services (ACS)".
    """
    redirecting: dict[tuple[tuple[str, ...], tuple[str, ...], bool], list[str]] = {}
    virtual: list[str] = []
    asked = False
    for node, pci in snapshot.known("pci"):
        is_virtual = _virtual(node.facts)
        if is_virtual is True:
            virtual.append(node.host)
            continue
        found = paths(pci, node.facts.rdma)
        yield from unknown_places(node)
        ports = _ports_that_matter(found)
        asked = asked or bool(ports)
        on = tuple(port.address for port in ports if port.acs_redirect is True)
        unknown = [port for port in ports if isinstance(port.acs_redirect, Missing)]
        if unknown:
            why = unknown[0].acs_redirect
            hint = "; only root can read it" if isinstance(why, Missing) and why.missing == "denied" else ""
            yield NotKnown(
                f"ACS of {listed(device.address for device in unknown)}: {why}{hint}", (node.host,)
            )
        if isinstance(node.facts.rdma, Missing):
            yield NotKnown(f"which cards have RDMA devices: {node.facts.rdma}", (node.host,))
        elif lost := unplaced(pci, node.facts.rdma):
            yield NotKnown(f"where {listed(lost)} {verb(lost, 'is', 'are')} on the PCI bus", (node.host,))
        if on:
            below = tuple(path.label for path in found if any(port.address in on for port in path.bridges))
            redirecting.setdefault((on, below, isinstance(is_virtual, Missing)), []).append(node.host)
    for (on, below, is_context_unknown), hosts in redirecting.items():
        yield _finding(on, below, tuple(hosts), is_context_unknown=is_context_unknown)
    if not asked and not redirecting and any(True for _ in snapshot.known("pci")):
        yield NotApplicable(
            f"{named(virtual)} {verb(virtual, 'is a virtual machine', 'are virtual machines')}: the "
            "host controls ACS"
            if virtual
            else "no GPU shares a PCIe switch with a NIC or another GPU"
        )
    yield from not_reported(snapshot)


def _virtual(facts: NodeFacts) -> Fact[bool]:
    return facts.kernel if isinstance(facts.kernel, Missing) else facts.kernel.virtual_machine


def _ports_that_matter(found: Sequence[Path]) -> list[PciDevice]:
    """The bridges on the way between two devices below the upstream port of a common switch, which never redirects."""
    matter: dict[str, PciDevice] = {}
    for path in (port for port in found if port.is_gpu):
        for second in found:
            if second is path:
                continue
            shared = _shared(path, second)
            if shared:
                for bridge in (*path.bridges[shared:], *second.bridges[shared:]):
                    matter[bridge.address] = bridge
    return [matter[address] for address in sorted(matter)]


def _shared(first: Path, second: Path) -> int:
    """How many bridges the two have in common; 0 where they meet at the root only, a root port included.

    Two devices below one root port are below a switch, whose upstream port is the second bridge they share.
    """
    count = 0
    for bridge, device in zip(first.bridges, second.bridges, strict=False):
        if bridge.address != device.address:
            break
        count += 1
    return count if count >= _BOTH else 0


def _finding(
    on: tuple[str, ...], below: tuple[str, ...], hosts: tuple[str, ...], *, is_context_unknown: bool
) -> Finding:
    doubt = (
        " (that is right in a virtual machine; whether this is one is not known)"
        if is_context_unknown
        else ""
    )
    return Finding(
        "warning",
        f"ACS of the PCIe {verb(on, 'bridge', 'bridges')} {listed(on)} on {named(hosts)} redirects the traffic between "
        f"{listed(below, 4)} to the CPU: GPUDirect and peer-to-peer get a fraction of the bandwidth{doubt}",
        hosts,
        tuple(
            Evidence(
                hosts, f"ACS redirect of {address}", "on", "off", f"/sys/bus/pci/devices/{address}/config"
            )
            for address in on[:_MOST_EVIDENCE]
        ),
        (
            Fix(
                "switch ACS off in the BIOS, or at each boot for the bridges that are named",
                tuple(f"sudo setpci -s {address} ECAP_ACS+0x6.w=0000" for address in on[:_MOST_EVIDENCE]),
                risk=(
                    "virtual machines on this host are then no longer isolated from each other; a "
                    "reboot undoes the command"
                ),
            ),
        ),
    )
