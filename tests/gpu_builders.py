"""How a healthy GPU of eight answers, and functions that break one thing of one GPU of a snapshot."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from ncclcheck.model.fact import Missing
from ncclcheck.model.gpu import Fabric, GpuState, NvLink, PeerAccess
from ncclcheck.model.snapshot import Snapshot

LINKS = 18


def healthy_state(index: int = 0) -> GpuState:
    """One of eight H100 of an NVSwitch machine that nobody uses."""
    return GpuState(
        memory_used_bytes=4 << 20,
        processes=(),
        ecc=True,
        ecc_uncorrected_volatile=0,
        ecc_uncorrected_aggregate=0,
        remap_pending=False,
        remap_failed=False,
        recovery_action="none",
        slowdowns=(),
        sm_clock_mhz=345,
        max_sm_clock_mhz=1980,
        power_w=71.0,
        power_limit_w=700.0,
        temperature_c=31,
        mig=False,
        persistence=True,
        compute_capability="9.0",
        pcie_generation=5,
        pcie_width=16,
        max_pcie_generation=5,
        max_pcie_width=16,
        compute_mode="default",
        nvlinks=tuple(NvLink(link, True) for link in range(LINKS)),
        fabric=Fabric("completed", 0, "healthy", False),
        peers=tuple(PeerAccess(peer, "ok") for peer in range(8) if peer != index),
    )


def links(*down: int) -> tuple[NvLink, ...]:
    """All links active but those."""
    return tuple(NvLink(link, link not in down) for link in range(LINKS))


def with_gpu(snapshot: Snapshot, host: str, index: int, **changes: Any) -> Snapshot:
    """The snapshot in which one GPU says something else; names of its state may be given too."""
    nodes = []
    for node in snapshot.nodes:
        gpus = node.facts.gpus
        assert not isinstance(gpus, Missing)
        if node.host == host:
            gpus = tuple(_changed(gpu, changes) if gpu.index == index else gpu for gpu in gpus)
        nodes.append(replace(node, facts=replace(node.facts, gpus=gpus)))
    return replace(snapshot, nodes=tuple(nodes))


def with_all_gpus(snapshot: Snapshot, **changes: Any) -> Snapshot:
    """The snapshot in which every GPU says so."""
    for node in snapshot.nodes:
        for index in range(8):
            snapshot = with_gpu(snapshot, node.host, index, **changes)
    return snapshot


def _changed(gpu: Any, changes: dict[str, Any]) -> Any:
    gpu_changes = {name: value for name, value in changes.items() if name in gpu.__struct_fields__}
    state = {name: value for name, value in changes.items() if name not in gpu_changes}
    return replace(gpu, state=replace(gpu.state, **state), **gpu_changes)
