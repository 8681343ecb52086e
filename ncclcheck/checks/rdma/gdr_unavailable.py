"""NC307 gdr-unavailable."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ncclcheck.checks.hosts import named, not_reported, verb
from ncclcheck.checks.rdma_ports import Surveyed, has_gpus, not_surveyed, surveyed, without_devices
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.finding import Evidence, Finding, Fix, NotApplicable, NotKnown
from ncclcheck.model.formats.prose import listed
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.nccl import network
from ncclcheck.nccl.explanation import network_choice
from ncclcheck.nccl.rdma import gpudirect
from ncclcheck.nccl.versions import PEER_MEMORY, at, parse

_DMABUF_KERNEL = (5, 12)  # drivers/infiniband/core/umem_dmabuf.c came with Linux 5.12
_RELEASE = re.compile(r"(\d+)\.(\d+)", re.ASCII)
_VERSION_FILE = "/proc/driver/nvidia/version"


@check(
    "NC307",
    "gdr-unavailable",
    "The NICs can read and write GPU memory directly (GPUDirect RDMA)",
    needs=("rdma", "pci"),
)
def gdr_unavailable(snapshot: Snapshot) -> Iterator[Answer]:
    """Where NCCL uses InfiniBand or RoCE on a node with GPUs, a peer-memory module is loaded, or DMA-BUF can be used.

    Either is enough. The module that NCCL looks for depends on its version. EFA and other plug-ins have their own
    methods and are not judged, nor are nodes without GPUs.

    ## Why it matters
    Without GPUDirect RDMA every byte is first copied from the GPU to host memory and then sent: NCCL says so in its
    INFO log only ("GPU Direct RDMA Disabled"), and a fast network runs at a fraction of its bandwidth.

    ## How to fix
    `modprobe nvidia_peermem` on the host, or use the NVIDIA driver with open kernel modules on Linux 5.12 or newer, so
    that NCCL takes DMA-BUF. NCCL 2.22 does not look for nvidia_peermem: use 2.23 or newer there.

    ## Source
    NCCL src/transport/net_ib.cc (ncclIbGdrSupport, ncclIbDmaBufSupport); files below /sys/kernel/mm/memory_peers and
    /sys/module/nvidia_peermem; /proc/driver/nvidia/version.
    """
    nodes = surveyed(snapshot)
    yield from without_devices(nodes)
    lacking: dict[tuple[str, ...], list[Surveyed]] = {}
    judged, apart = False, list[str]()
    for node in nodes:
        if not node.rdma.ports:
            continue
        question = _question(node)
        if isinstance(question, NotApplicable):
            apart.append(question.reason)
            continue
        if question is not None:
            judged = True
            yield question
            continue
        judged = True
        answer = _answer(node)
        if isinstance(answer, NotKnown):
            yield answer
        elif answer:
            lacking.setdefault(answer, []).append(node)
    if not judged and apart:
        yield NotApplicable("; ".join(apart))
    for reasons, members in lacking.items():
        yield _finding(reasons, members)
    yield from not_surveyed(snapshot)
    yield from not_reported(snapshot)


def _question(node: Surveyed) -> NotKnown | NotApplicable | None:
    """Why the question does not arise on that node, or cannot be answered; None where it can."""
    gpus = has_gpus(node.facts)
    if gpus is False:
        return NotApplicable(f"{node.host} has no NVIDIA GPU")
    choice = network_choice(node.facts)
    if isinstance(choice, Missing):
        return NotKnown(f"what NCCL uses: {choice}", (node.host,))
    if choice.network is None and not choice.fails:
        return NotKnown(f"which network NCCL uses: {choice.network_reason}", (node.host,))
    if choice.network != network.IB:
        return NotApplicable(f"NCCL does not use InfiniBand or RoCE on {node.host}")
    return None if gpus else NotKnown("whether the node has GPUs was not read", (node.host,))


def _answer(node: Surveyed) -> NotKnown | tuple[str, ...]:
    """Nothing where GPUDirect RDMA is possible, why it is not, or what is not known."""
    kernel = node.facts.kernel
    nvidia_open = kernel if isinstance(kernel, Missing) else kernel.nvidia_open
    module, dmabuf = gpudirect.gpudirect_methods(
        node.rdma.peer_memory, nvidia_open, node.environment, node.version
    )
    if module[0]:
        return ()
    if dmabuf[0]:
        kernel_too_old = _kernel_too_old(kernel if isinstance(kernel, Missing) else kernel.release)
        if not kernel_too_old:
            return ()
        dmabuf = (None, kernel_too_old)
    if module[0] is None or dmabuf[0] is None:
        return NotKnown("; ".join(words for is_open, words in (module, dmabuf) if not is_open), (node.host,))
    return module[1], dmabuf[1]


def _kernel_too_old(release: Fact[str]) -> str:
    """Why it is in doubt that the kernel lets RDMA use DMA-BUF; empty where it does. Vendors bring it to older ones."""
    if isinstance(release, Missing):
        return (
            f"whether the kernel has DMA-BUF for RDMA (5.12 or newer): its release was not read ({release})"
        )
    match = _RELEASE.match(release)
    if match and (int(match[1]), int(match[2])) >= _DMABUF_KERNEL:
        return ""
    return f"whether kernel {release}, older than 5.12, has DMA-BUF for RDMA"


def _finding(reasons: tuple[str, ...], surveyed_nodes: list[Surveyed]) -> Finding:
    hosts = tuple(member.host for member in surveyed_nodes)
    first = surveyed_nodes[0]
    looked_at = at(PEER_MEMORY, parse(first.version))
    found = first.rdma.peer_memory
    observed = listed(found) if not isinstance(found, Missing) and found else "none of them"
    ports = listed(dict.fromkeys(port.device for port in first.active))
    return Finding(
        "warning",
        f"the NICs of {named(hosts)} ({ports}) cannot reach GPU memory, so all data is copied "
        f"through host memory: {'; '.join(reasons)}",
        hosts,
        (
            Evidence(
                hosts,
                "peer-memory module",
                observed,
                f"one of {listed(looked_at)}",
                "/sys/kernel/mm, /sys/module",
            ),
            Evidence(hosts, "DMA-BUF", reasons[-1], "possible", _VERSION_FILE),
        ),
        (
            Fix(
                f"load the peer-memory module on the {verb(hosts, 'host', 'hosts')}, or use the NVIDIA driver's open "
                "kernel modules (either is enough)",
                ("sudo modprobe nvidia_peermem", f"cat {_VERSION_FILE}"),
            ),
        ),
    )
