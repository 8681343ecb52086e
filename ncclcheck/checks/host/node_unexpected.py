"""NC713 node-unexpected."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from ncclcheck.checks.chosen import Chosen, chosen, not_chosen
from ncclcheck.checks.expectations import Nothing, Reader, Seen, gpus_of, or_nothing, unexpected
from ncclcheck.checks.gpus import label
from ncclcheck.checks.pcie_path import Path, paths
from ncclcheck.checks.rdma_ports import Surveyed, file_of, surveyed
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.facts import Gpu, Limits
from ncclcheck.model.hardware import RdmaPort
from ncclcheck.model.policy.expected import Expectation
from ncclcheck.model.snapshot import Node, Snapshot

_KIB = 1024
_NO_GPU = Nothing("there is no GPU")


@check(
    "NC713",
    "node-unexpected",
    "Each node meets the policy: driver, GPUs, network, RDMA, PCIe, limits",
    demands=(
        "versions.driver",
        "versions.kernel",
        "gpus_per_node",
        "rdma_ports_per_node",
        "gpu",
        "network",
        "rdma",
        "pcie",
        "limits",
    ),
)
def node_unexpected(snapshot: Snapshot) -> Iterator[Answer]:
    """Each node meets what the policy (`--expect`) requires of machines.

    These are `driver` and `kernel` of `[versions]`, the counts per node, and all of `[gpu]`, `[network]`, `[rdma]`,
    `[pcie]` and `[limits]`. `[network]` is about the interface that NCCL chooses; `[rdma]` about the ports that NCCL
    may use by NCCL_IB_HCA, of which `rdma_ports_per_node` counts the ACTIVE ones. Sizes and rates are minimum values,
    model and interface are shell patterns. The PCIe speed of a GPU is the card's maximum, since an idle GPU lowers
    its speed. What could not be read is unknown, and the run then ends with exit code 3.

    ## Why it matters
    Nodes that agree with each other can still be wrong: a whole rack can have an old driver or slow ports. The policy
    says what was ordered and tested.

    ## How to fix
    Leave the node out of the job and repair it, or correct the policy. The finding names the line.

    ## Source
    The policy, by file and line; NVML, /sys, /proc and the kernel's limits, as the evidence says.
    """
    yield from unexpected(snapshot, READERS, "repair the node or leave it out of the job")


def _driver(node: Node, expectation: Expectation) -> Iterator[Seen]:
    del expectation
    software = node.facts.software
    value = software if isinstance(software, Missing) else or_nothing(software.driver)
    yield Seen("the NVIDIA driver", value, "/proc/driver/nvidia/version")


def _kernel(node: Node, expectation: Expectation) -> Iterator[Seen]:
    del expectation
    software, kernel = node.facts.software, node.facts.kernel
    value: Fact[str] = software if isinstance(software, Missing) else software.kernel
    if isinstance(value, Missing) and not isinstance(kernel, Missing):
        value = kernel.release
    yield Seen("the kernel", value, "uname -r")


def _gpu_count(node: Node, expectation: Expectation) -> Iterator[Seen]:
    del expectation
    gpus = gpus_of(node)
    yield Seen("the number of GPUs", gpus if isinstance(gpus, Missing) else float(len(gpus)), "NVML")


def _each_gpu(what: str, read: Callable[[Gpu], Fact[str] | Fact[float | None]]) -> Reader:
    def reader(node: Node, expectation: Expectation) -> Iterator[Seen]:
        del expectation
        gpus = gpus_of(node)
        if isinstance(gpus, Missing) or not gpus:
            yield Seen(f"the {what} of the GPUs", gpus if isinstance(gpus, Missing) else _NO_GPU, "NVML")
        else:
            yield from (Seen(f"the {what} of {label(gpu)}", read(gpu), "NVML") for gpu in gpus)

    return reader


def _memory_kib(gpu: Gpu) -> Fact[float | None]:
    return gpu.memory_bytes if isinstance(gpu.memory_bytes, Missing) else gpu.memory_bytes / _KIB


def _network(what: str, source: str, read: Callable[[Chosen], Fact[str] | Fact[float | None]]) -> Reader:
    """Something of the interface that NCCL chooses; where it chooses none, another check says why."""

    def reader(node: Node, expectation: Expectation) -> Iterator[Seen]:
        del expectation
        alone = Snapshot(nodes=(node,))
        for choice in chosen(alone):
            yield Seen(f"{what} {choice.name}" if what.endswith(" of") else what, read(choice), source)
        yield from (Seen(what, Missing("absent", why.reason), source) for why in not_chosen(alone))

    return reader


def _speed(choice: Chosen) -> Fact[float | None]:
    speed_mbps = choice.interface.speed_mbps
    return speed_mbps if isinstance(speed_mbps, Missing) else speed_mbps / 1000


def _surveyed(node: Node) -> Fact[Surveyed]:
    """The RDMA ports of the node that matter; a recorded machine has nothing set."""
    if isinstance(node.facts.rdma, Missing):
        return node.facts.rdma
    found = surveyed(Snapshot(nodes=(node,)))
    return found[0] if found else Missing("absent", "which ports NCCL may use is not known: the environment")


def _rdma_count(node: Node, expectation: Expectation) -> Iterator[Seen]:
    del expectation
    found = _surveyed(node)
    value: Fact[float | None]
    value = found if isinstance(found, Missing) else next(iter(_undecided(found)), float(len(found.active)))
    yield Seen("the number of ACTIVE RDMA ports that NCCL may use", value, "/sys/class/infiniband")


def _undecided(found: Surveyed) -> Iterator[Missing]:
    """What keeps it from being known which ports are verbs ports, ACTIVE, and can be opened."""
    rdma = found.rdma
    facts: list[Fact[str] | Fact[tuple[str, ...]]] = []
    for port in rdma.ports:
        facts += [port.link_layer, port.driver, port.state, port.uverbs]
    facts += [rdma.device_files, rdma.unusable_files] if rdma.ports else []
    yield from (fact for fact in facts if isinstance(fact, Missing))


def _each_port(what: str, file: str, read: Callable[[RdmaPort], Fact[str] | Fact[float | None]]) -> Reader:
    def reader(node: Node, expectation: Expectation) -> Iterator[Seen]:
        del expectation
        found = _surveyed(node)
        if isinstance(found, Missing):
            yield Seen(f"the {what} of the RDMA ports", found, "/sys/class/infiniband")
        elif not found.selected:
            yield Seen(
                f"the {what} of the RDMA ports", Nothing("no port that NCCL may use"), "/sys/class/infiniband"
            )
        else:
            for port in found.selected:
                yield Seen(f"the {what} of {port.device}:{port.port}", read(port), file_of(port, file))

    return reader


def _each_link(of_gpus: bool, what: str, read: Callable[[Path], Fact[float | None]]) -> Reader:
    cards = "GPUs" if of_gpus else "RDMA NICs"

    def reader(node: Node, expectation: Expectation) -> Iterator[Seen]:
        del expectation
        pci, rdma = node.facts.pci, node.facts.rdma
        if isinstance(pci, Missing):
            yield Seen(f"the PCIe {what} of the {cards}", pci, "/sys/bus/pci")
        elif isinstance(rdma, Missing) and not of_gpus:
            yield Seen(f"the PCIe {what} of the {cards}", rdma, "/sys/class/infiniband")
        elif not (links := [link for link in paths(pci, rdma) if link.is_gpu is of_gpus]):
            yield Seen(
                f"the PCIe {what} of the {cards}", Nothing(f"no {cards[:-1]} on the bus"), "/sys/bus/pci"
            )
        else:
            for link in links:
                source = f"/sys/bus/pci/devices/{link.device.address}"
                yield Seen(f"the PCIe {what} of {link.label}", read(link), source)

    return reader


def _limit(what: str, source: str, read: Callable[[Limits], Fact[float | None]]) -> Reader:
    def reader(node: Node, expectation: Expectation) -> Iterable[Seen]:
        del expectation
        limits = node.facts.limits
        return (Seen(what, limits if isinstance(limits, Missing) else read(limits), source),)

    return reader


def _shm(limits: Limits) -> Fact[float | None]:
    return limits.dev_shm if isinstance(limits.dev_shm, Missing) else limits.dev_shm.size_kib


# By the key of the policy; what is seen here is also what `facts --as-policy` writes.
READERS: dict[str, Reader] = {
    "versions.driver": _driver,
    "versions.kernel": _kernel,
    "gpus_per_node": _gpu_count,
    "rdma_ports_per_node": _rdma_count,
    "gpu.model": _each_gpu("model", lambda gpu: gpu.name),
    "gpu.memory": _each_gpu("memory", _memory_kib),
    "gpu.compute_capability": _each_gpu("compute capability", lambda gpu: gpu.state.compute_capability),
    "network.interface": _network("NCCL's interface", "NCCL's choice", lambda nccl_choice: nccl_choice.name),
    "network.subnet": _network("NCCL's address", "NCCL's choice", lambda nccl_choice: nccl_choice.address),
    "network.speed_gbit_s": _network("the speed of", "/sys/class/net", _speed),
    "network.mtu": _network("the MTU of", "/sys/class/net", lambda nccl_choice: nccl_choice.interface.mtu),
    "rdma.rate_gbit_s": _each_port("rate", "rate", lambda port: port.rate_gbps),
    "rdma.link_layer": _each_port("link layer", "link_layer", lambda port: port.link_layer),
    "pcie.gpu_width": _each_link(True, "width", lambda link: link.device.link_width),
    "pcie.gpu_speed_gt_s": _each_link(True, "speed", lambda link: link.device.max_link_speed_gt_s),
    "pcie.nic_width": _each_link(False, "width", lambda link: link.device.link_width),
    "pcie.nic_speed_gt_s": _each_link(False, "speed", lambda link: link.device.link_speed_gt_s),
    "limits.memlock": _limit("RLIMIT_MEMLOCK", "getrlimit", lambda limits: limits.memlock_kib),
    "limits.shm": _limit("the size of /dev/shm", "statvfs of /dev/shm", _shm),
    "limits.nofile": _limit("RLIMIT_NOFILE", "getrlimit", lambda limits: limits.nofile),
}
