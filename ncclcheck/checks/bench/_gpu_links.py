"""Through which links the GPUs of a node reach each other, and how fast these are."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from ncclcheck.checks.bench._links import processes_of
from ncclcheck.checks.pcie_path import paths
from ncclcheck.measure.op_ceiling import nvlink_term, pcie_gb_s
from ncclcheck.measure.traffic import Term
from ncclcheck.model.bench import BenchResult
from ncclcheck.model.events import Process
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.facts import Gpu, NodeFacts
from ncclcheck.model.snapshot import Node, Snapshot
from ncclcheck.nccl.gpus.nvlinks import active_links, joined

_NVLS_SINCE = 90


def inside_term(snapshot: Snapshot, bench: BenchResult) -> Term | None:
    """Return the links between the GPUs of the node with the slowest links; None where not known, or with gloo."""
    if bench.backend != "nccl":
        return None
    terms = [_inside(node, bench) for node in snapshot.nodes]
    known = [term for term in terms if term is not None]
    return min(known, key=lambda term: term.gb_s) if known and len(known) == len(terms) else None


def switches_may_sum(snapshot: Snapshot) -> bool:
    """Return False if the GPUs are known to have no NVSwitch that adds for them (NVLS), or may be too old for it.

    NCCL asks CUDA for it (src/transport/nvls.cc, CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED); GPUs with bridges or PCIe
    alone do not have it, whatever their compute capability is.
    """
    return all(_may_sum(node.facts) for node in snapshot.nodes)


def compute_capability(facts: NodeFacts) -> int:
    """Return the lowest compute capability of the GPUs as NCCL writes it (9.0 is 90); 0 where it is not known."""
    found = [] if isinstance(facts.gpus, Missing) else [gpu.state.compute_capability for gpu in facts.gpus]
    numbers = [_capability(gpu) for gpu in found if isinstance(gpu, str)]
    return min(numbers) if numbers and len(numbers) == len(found) else 0


def gpu_of(process: Process, facts: NodeFacts) -> Gpu | None:
    """Return the GPU that a process uses, by its PCI address; None where the node lists none there."""
    address = _address(process.bus_id)
    listed = () if isinstance(facts.gpus, Missing) else facts.gpus
    return next((gpu for gpu in listed if gpu.pci == address), None)


def _address(bus_id: str) -> str:
    """Return 0000:1b:00.0 for NCCL's `1b000`."""
    try:
        number = int(bus_id, 16)
    except ValueError:
        return ""
    return f"{number >> 20:04x}:{number >> 12 & 0xFF:02x}:{number >> 4 & 0xFF:02x}.{number & 0xF:x}"


def _may_sum(facts: NodeFacts) -> bool:
    if isinstance(facts.gpus, Missing) or compute_capability(facts) < _NVLS_SINCE:
        return False
    return joined(facts.gpus, facts) in ("switch", "unknown")


def _capability(text: str) -> int:
    major, _, minor = text.partition(".")
    return int(major) * 10 + int(minor or "0") if major.isdigit() and (minor or "0").isdigit() else 0


def _inside(node: Node, bench: BenchResult) -> Term | None:
    """Return the slowest GPU's NVLinks; without any that join them all, its PCIe link."""
    facts = node.facts
    if isinstance(facts.gpus, Missing) or not facts.gpus:
        return None
    gpus_used = [gpu_of(process, facts) for process in processes_of(bench, node.host)]
    used = tuple({gpu.index: gpu for gpu in gpus_used if gpu is not None}.values())
    is_told = bool(gpus_used) and None not in gpus_used
    gpus = used if is_told and len(used) > 1 else facts.gpus
    how = joined(gpus, facts)
    if how == "none":
        return _by_pcie(facts)
    if how == "some":
        return _by_bridges(facts) if is_told or bench.world_size >= bench.nodes * len(gpus) else None
    return _by_nvlinks(gpus, facts)


def _by_nvlinks(gpus: Sequence[Gpu], facts: NodeFacts) -> Term | None:
    active = [active_links(gpu) or 0 for gpu in gpus]
    capability = compute_capability(facts)
    return nvlink_term(min(active), capability) if min(active) > 0 and capability else None


def _by_bridges(facts: NodeFacts) -> Term | None:
    """Return the PCIe links that join groups of GPUs with NVLinks; all GPUs of a group may use theirs: no limit."""
    term = _by_pcie(facts)
    return term and replace(term, text=f"{term.text}, as NVLinks join only some of them", spec_gb_s=None)


def _by_pcie(facts: NodeFacts) -> Term | None:
    if isinstance(facts.pci, Missing):
        return None
    gpus = [path for path in paths(facts.pci, facts.rdma) if path.is_gpu]
    rates = [_could_do(path.device.max_link_speed_gt_s, path.device.max_link_width) for path in gpus]
    known = [rate for rate in rates if rate is not None]
    if not known or len(known) < len(rates):
        return None
    return Term(min(known), f"PCIe of {min(known):.3g} GB/s per GPU", "link-speed", min(known))


def _could_do(speed: Fact[float], width: Fact[int]) -> float | None:
    return (
        pcie_gb_s(speed, width) if isinstance(speed, float) and isinstance(width, int) and width > 0 else None
    )
