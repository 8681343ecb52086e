"""NC410 pcie-degraded."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from msgspec import Struct

from ncclcheck.checks.gpus import label
from ncclcheck.checks.hosts import named, not_reported, verb
from ncclcheck.checks.pcie._driver_links import SOURCE, links_of_driver, unread_gpus, with_links_of_driver
from ncclcheck.checks.pcie_path import Path, least, paths, unplaced
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.facts import NodeFacts
from ncclcheck.model.finding import Evidence, Finding, Fix, NotApplicable, NotKnown
from ncclcheck.model.formats.prose import listed
from ncclcheck.model.hardware import PciDevice
from ncclcheck.model.snapshot import Node, Snapshot

_MOST_EVIDENCE = 12


class _Slow(Struct, frozen=True):
    """A link that came up narrower or slower than the whole path allows, and whose path it is on."""

    device: PciDevice
    what: str  # width, speed
    now: str
    could: str
    file: str
    labels: tuple[str, ...]  # the GPUs and NICs that send through it


@check(
    "NC410",
    "pcie-degraded",
    "The PCIe links of GPUs and NICs are as wide and fast as their path allows",
    needs=("pci",),
    alike=("gpus", "kernel", "pci", "rdma", "torch_gpus"),
    by_node=True,
)
def pcie_degraded(snapshot: Snapshot) -> Iterator[Answer]:
    """Each PCIe link between a GPU or RDMA NIC and the root runs at the width and speed that its path supports.

    The expected value comes from the machine itself: the lowest maximum along the path, so an x16 card in an x8 slot
    is fine. An idle GPU lowers its link speed to save power, so a lower speed is information; the width does not
    change. In a virtual machine the bridges are emulated, and only the devices themselves are judged.

    ## Why it matters
    A card that is not seated well, dust, or a bad riser makes a link train at fewer lanes or an older speed, without
    an error. The card works, at half or a quarter of its bandwidth, and every collective waits for it.

    ## How to fix
    `lspci -vv` shows LnkCap and LnkSta of both ends. Reseat the card or replace the riser; look for a limit in the
    BIOS (bifurcation, "link speed"); reboot to let the link train again.

    ## Source
    /sys/bus/pci/devices/*/{current,max}_link_{width,speed}; PCI Express Base Specification, Link Status register. For
    GPUs that /sys lacks, as in some virtual machines and containers, NVML (nvmlDeviceGetCurrPcieLinkWidth,
    nvmlDeviceGetMaxPcieLinkWidth: the most that device and slot can do; and those of the generation).
    """
    judged = False
    slow: dict[_Slow, list[str]] = {}
    idle: dict[tuple[str, str, tuple[str, ...], bool], list[str]] = {}
    for node in snapshot.nodes:
        pci = with_links_of_driver(node.facts)
        found = paths(pci, node.facts.rdma)
        judged = judged or bool(found)
        yield from _unread_gpus(node)
        if isinstance(node.facts.pci, Missing) and not found:
            continue
        if pci.unread:
            yield NotKnown(f"which devices are at {listed(pci.unread)} of the PCI bus", (node.host,))
        unknown = [path.label for path in found if _is_unknown(path)]
        if unknown:
            yield NotKnown(f"the PCIe link of {listed(unknown)} could not be read", (node.host,))
        if isinstance(node.facts.rdma, Missing):
            yield NotKnown(f"which cards have RDMA devices: {node.facts.rdma}", (node.host,))
        elif lost := unplaced(pci, node.facts.rdma):
            yield NotKnown(f"where {listed(lost)} {verb(lost, 'is', 'are')} on the PCI bus", (node.host,))
        by_driver = {device.address for device in links_of_driver(node.facts).devices}
        hops_are_real = not _is_virtual(node.facts)
        for link in _slow_links(found, by_driver, are_bridges_real=hops_are_real):
            slow.setdefault(link, []).append(node.host)
        for key in _idle_gpus(found, by_driver):
            idle.setdefault(key, []).append(node.host)
    if not judged and any(not unread_gpus(node.facts) for node, _ in snapshot.known("pci")):
        yield NotApplicable("there is no GPU and no RDMA NIC on the PCI bus")
    yield from (_finding(slow_link, tuple(hosts)) for slow_link, hosts in slow.items())
    yield from (_mention(*key, tuple(hosts)) for key, hosts in idle.items())
    yield from not_reported(snapshot)


def _unread_gpus(node: Node) -> Iterator[NotKnown]:
    """GPUs whose link neither /sys nor the driver reports."""
    if why := unread_gpus(node.facts):
        yield NotKnown(f"the PCIe links of its GPUs: {why}", (node.host,))
    if not isinstance(node.facts.gpus, Missing):
        nameless = [label(gpu) for gpu in node.facts.gpus if isinstance(gpu.pci, Missing)]
        if nameless:
            yield NotKnown(f"the PCIe link of {listed(nameless)} could not be read", (node.host,))


def _is_virtual(facts: NodeFacts) -> bool:
    return not isinstance(facts.kernel, Missing) and facts.kernel.virtual_machine is True


def _is_unknown(path: Path) -> bool:
    device = path.device
    needed: list[Fact[int] | Fact[float]] = [device.link_width, device.max_link_width]
    needed += [device.link_speed_gt_s, device.max_link_speed_gt_s]
    return any(isinstance(value, Missing) for value in needed)


def _slow_links(found: Sequence[Path], by_driver: Collection[str], *, are_bridges_real: bool) -> list[_Slow]:
    """Every slow link once, named by its lower end, with all that send through it."""
    gpu_links = {path.bridges[-1].address for path in found if path.is_gpu and path.bridges}
    links: dict[tuple[str, str], list[tuple[PciDevice, str, str, str]]] = {}
    for path in found:
        hops = path.hops if are_bridges_real else (path.device,)
        width = least(device.max_link_width for device in path.hops)
        speed = least(device.max_link_speed_gt_s for device in path.hops)
        for hop in hops:
            if _is_less(hop.link_width, width):
                links.setdefault((hop.address, "width"), []).append(
                    (hop, f"x{hop.link_width}", f"x{width:g}", path.label)
                )
            is_of_gpu = hop.address in gpu_links or (hop is path.device and path.is_gpu)
            if _is_less(hop.link_speed_gt_s, speed) and not is_of_gpu:
                links.setdefault((hop.address, "speed"), []).append(
                    (hop, f"{hop.link_speed_gt_s} GT/s", f"{speed:g} GT/s", path.label)
                )
    slow_links = [
        _Slow(
            link[0][0],
            what,
            link[0][1],
            link[0][2],
            SOURCE if address in by_driver else f"/sys/bus/pci/devices/{address}/current_link_{what}",
            tuple(entry[3] for entry in link),
        )
        for (address, what), link in links.items()
    ]
    return [slow for slow in slow_links if not _is_other_end(slow, slow_links)]


def _is_other_end(link: _Slow, slow_links: Sequence[_Slow]) -> bool:
    """True if the lower end of the same link, a device right below, reports the same."""
    return any(
        candidate.device.upstream[-1:] == (link.device.address,)
        and (candidate.what, candidate.now) == (link.what, link.now)
        for candidate in slow_links
    )


def _is_less(now: Fact[float] | Fact[int], could: float | None) -> bool:
    return not isinstance(now, Missing) and could is not None and now < could


def _idle_gpus(
    found: Sequence[Path], told_by_driver: Collection[str]
) -> Iterator[tuple[str, str, tuple[str, ...], bool]]:
    groups: dict[tuple[str, str, bool], list[str]] = {}
    for path in found:
        speed = least(hop.max_link_speed_gt_s for hop in path.hops)
        now = path.device.link_speed_gt_s
        if path.is_gpu and _is_less(now, speed):
            by_driver = path.device.address in told_by_driver
            groups.setdefault((f"{now} GT/s", f"{speed:g} GT/s", by_driver), []).append(path.label)
    for (now_text, could, by_driver), labels in groups.items():
        yield now_text, could, tuple(labels), by_driver


def _finding(link: _Slow, hosts: tuple[str, ...]) -> Finding:
    own_labels = [label for label in link.labels if link.device.address in label]
    subject = (
        own_labels[0] if own_labels else f"bridge {link.device.address} (above {listed(link.labels, 3)})"
    )
    address = link.device.address
    return Finding(
        "warning",
        f"the PCIe link of {subject} on {named(hosts)} runs at {link.now} where its path allows {link.could}: "
        f"{verb(link.labels, 'the device gets', 'the devices below get')} {_part(link)} of the bandwidth, and the "
        "others wait for it",
        hosts,
        (
            Evidence(
                hosts,
                f"PCIe link {link.what} of {subject}",
                link.now,
                f"{link.could} (the least of max_link_{link.what} up to the root)",
                link.file,
            ),
        ),
        (
            Fix(
                "reseat the card or its riser, look at the slot's limits in the BIOS, and reboot to train it again",
                (f"sudo lspci -vv -s {address} | grep -e LnkCap: -e LnkSta:", _look(link)),
            ),
        ),
    )


def _look(link: _Slow) -> str:
    if link.file != SOURCE:
        return f"cat {link.file}"
    fields = "pci.bus_id,pcie.link.width.current,pcie.link.width.max"
    return f"nvidia-smi --query-gpu={fields} --format=csv"


def _part(link: _Slow) -> str:
    now, could = (float(text.removeprefix("x").removesuffix(" GT/s")) for text in (link.now, link.could))
    return f"{100 * now / could:.0f} %"


def _mention(
    now: str, could: str, labels: tuple[str, ...], by_driver: bool, hosts: tuple[str, ...]
) -> Finding:
    return Finding(
        "info",
        f"the PCIe links of {listed(labels, 3)} on {named(hosts)} run at {now} now and could run at {could}: an idle "
        "GPU saves power that way, so whether they are slow shows only under load",
        hosts,
        tuple(
            Evidence(
                hosts, f"PCIe link speed of {name}", now, could, SOURCE if by_driver else _speed_file(name)
            )
            for name in labels[:_MOST_EVIDENCE]
        ),
        (
            Fix(
                "look again while the GPU works",
                (
                    "nvidia-smi --query-gpu=pci.bus_id,pcie.link.gen.gpucurrent,pcie.link.gen.max --format=csv",
                ),
            ),
        ),
    )


def _speed_file(label: str) -> str:
    return f"/sys/bus/pci/devices/{label.removeprefix('GPU ')}/current_link_speed"
