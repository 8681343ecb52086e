"""The most that links allow, as bus bandwidth: what a ring reaches on them, and what no algorithm can exceed."""

from __future__ import annotations

from ncclcheck.measure.collectives import COLLECTIVES
from ncclcheck.measure.traffic import Shape, Term
from ncclcheck.model.bench import Op
from ncclcheck.model.benchmarks.ceiling import Ceiling

# NCCL src/graph/topo.h (2.27): what it counts on per NVLink, in GB/s, by compute capability; and the line rate of one.
_NVLINKS = (
    (100, 40.1, 50.0),
    (90, 20.6, 25.0),
    (87, 20.0, 25.0),
    (86, 12.0, 14.0625),  # A40 and A10 bridges: 56.25 GB/s over four links
    (80, 20.0, 25.0),
    (70, 20.0, 25.0),
    (60, 18.0, 20.0),
)
_PCIE_ENCODING = ((64.0, 242 / 256), (8.0, 128 / 130), (0.0, 8 / 10))  # by GT/s: FLIT, 128b/130b, 8b/10b


def nvlink_term(links: int, compute_capability: int) -> Term | None:
    """Return the NVLinks of one GPU; None for a GPU of which NCCL knows no NVLink. `compute_capability` 9.0 is 90."""
    for since, usable_gb_s, line_gb_s in _NVLINKS:
        if compute_capability >= since:
            text = f"{links} NVLinks of {usable_gb_s:g} GB/s per GPU"
            return Term(links * usable_gb_s, text, "link-speed", links * line_gb_s, links)
    return None


def pcie_gb_s(speed_gt_s: float, width: int) -> float:
    """Return the data rate of a PCIe link in one direction: transfers per second less the encoding."""
    encoding = next(share for least, share in _PCIE_ENCODING if speed_gt_s >= least)
    return speed_gt_s * width * encoding / 8


def network_ring_gb_s(op: Op, shape: Shape, network: Term) -> float:
    """Return the bus bandwidth that NCCL's and Gloo's usual algorithms reach where the network between nodes binds."""
    return COLLECTIVES[op].network_gb_s(shape, network)


def network_limit_gb_s(op: Op, shape: Shape, network: Term, *, switches_reduce: bool) -> float | None:
    """Return what no algorithm exceeds between nodes; None where the network has no line rate that is known.

    `switches_reduce`: the switches of the network may add (SHARP).
    """
    if network.spec_gb_s is None:
        return None
    rate, limit = network.spec_gb_s, COLLECTIVES[op].network_limit_gb_s
    if limit is not None:
        return limit(shape, rate, switches_reduce)
    return network_ring_gb_s(op, shape, Term(rate, "", "link-speed", rate, 1))


def inside_limit_gb_s(op: Op, ranks: int, inside: Term, *, nvls: bool) -> float | None:
    """Return what no algorithm exceeds inside a node: the line rate, or with NVLS nearly twice that: the switch adds.

    NVLS: each GPU sends its data once and receives the sum, (n+1)/n of the size (NVIDIA/nccl-tests#239).
    """
    if inside.spec_gb_s is None:
        return None
    if COLLECTIVES[op].sums_for_all and nvls:
        return inside.spec_gb_s * max(1.0, 2 * (ranks - 1) / (ranks + 1))  # two ranks gain nothing by it
    return inside.spec_gb_s


def ceiling(
    op: Op,
    shape: Shape,
    best_gb_s: float,
    network: Term | None,
    inside: Term | None,
    *,
    switches_reduce: bool = False,
    nvls: bool = False,
    label: str = "",
) -> Ceiling | None:
    """Return the ceiling of an op of which `best_gb_s` was measured; None where no term is known.

    `network` is None on one node, `inside` where nothing is known of the links inside it. Across nodes the limit is the
    network's alone: whatever goes on inside a node cannot raise it.
    """
    candidates = []
    if network is not None and shape.nodes > 1:
        candidates.append((network_ring_gb_s(op, shape, network), network))
    if inside is not None and shape.per_node > 1:
        candidates.append((inside.gb_s, inside))
    if not candidates or shape.world_size < 2:  # noqa: PLR2004 (one rank sends nothing)
        return None
    ring_gb_s, binds = min(candidates, key=lambda candidate: candidate[0])
    limited_by = network if shape.nodes > 1 else binds
    if shape.nodes > 1:
        limit = (
            network_limit_gb_s(op, shape, network, switches_reduce=switches_reduce)
            if network is not None
            else None
        )
    else:
        limit = inside_limit_gb_s(op, shape.world_size, binds, nvls=nvls)
    reached = best_gb_s / ring_gb_s if ring_gb_s > 0 else 0.0
    return Ceiling(
        op=op,
        busbw_gb_s=ring_gb_s,
        limit_gb_s=limit,
        binds=binds.text,
        source=binds.source,
        reached=reached,
        limited_by=limited_by.text if limited_by is not None and limit is not None else "",
        label=label,
    )
