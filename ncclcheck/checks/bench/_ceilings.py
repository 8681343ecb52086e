"""The ceilings of a benchmark's collectives: which link binds, how much of it was reached, what no algorithm can."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.checks.bench._gpu_links import inside_term, switches_may_sum
from ncclcheck.checks.bench._links import (
    gbit,
    is_one_nvlink_domain,
    network_terms,
    processes_of,
    switches_may_add,
)
from ncclcheck.measure.blame import slow_ranks
from ncclcheck.measure.collectives import COLLECTIVES
from ncclcheck.measure.op_ceiling import ceiling, network_ring_gb_s
from ncclcheck.measure.traffic import Shape, Term
from ncclcheck.model.bench import BenchResult, Op, Point
from ncclcheck.model.benchmarks.ceiling import Ceiling
from ncclcheck.model.fact import Missing
from ncclcheck.model.snapshot import Snapshot

_TWO_NODES = (
    "two nodes: NCCL's tree may reach twice the rate of the cards in all_reduce, so all_gather "
    "shows the network better"
)
_ABOVE = "above what a ring reaches: a tree, NVLS or SHARP, so the figure is not the rate of a link"
_NVLS = "NVLS: the switch reduces, so the bus bandwidth is not the rate of the links"
_TREE = "a tree, which is faster than a ring on two nodes: the bus bandwidth is not the rate of the cards"
_SHARP = "SHARP: the network switches reduce, so the bus bandwidth is not the rate of the cards"
_REACHES = 0.9
_SPREAD = 1.05  # of a measured bandwidth: so much more is the same
_FALLS_SHORT = 0.8
_LEAST_LARGE = 1 << 20  # bytes; below, latency binds and not a rate


class Ceilings(Struct, frozen=True):
    """One per op where something is known; `why` says what is not known, empty where all is."""

    ceilings: tuple[Ceiling, ...]
    why: str = ""


def ceilings(snapshot: Snapshot, bench: BenchResult) -> Ceilings:
    """Return the ceilings of all ops that were measured."""
    if bench.world_size < 2:  # noqa: PLR2004 (one rank sends nothing)
        return Ceilings((), "one rank: no data crosses a link")
    # In a domain of multi-node NVLink the nodes are as one: NVLink carries everything, and the network nothing.
    nodes = 1 if is_one_nvlink_domain(snapshot, bench) else max(1, bench.nodes)
    shape = Shape(bench.world_size, nodes)
    inside = inside_term(snapshot, bench)
    networks = network_terms(snapshot, bench) if shape.nodes > 1 else ()
    if isinstance(networks, Missing):
        return Ceilings((), f"what the links allow is not known: {networks.detail}")
    if not networks and inside is None:
        what = "memory and CPU are the limit" if bench.backend == "gloo" else "its links were not read"
        return Ceilings((), f"one node: what the links allow is not known, since {what}")
    believed = [_at_least_seen(term, shape, bench) for term in networks if not _is_disproved(term, networks)]
    by_speed = next((term for term in believed if term.spec_gb_s is not None), None)
    slowest = min(believed, key=lambda found_ceiling: found_ceiling.gb_s, default=None)
    found = []
    for op, best in best_points(bench).items():
        found_ceiling, limit = (
            ceiling(
                op,
                shape,
                best.busbw_gb_s,
                network,
                inside,
                switches_reduce=switches_may_add(snapshot, bench),
                nvls=switches_may_sum(snapshot),
                label=_label(bench, op),
            )
            for network in (slowest, by_speed)
        )
        if found_ceiling is not None:
            found.append(_labelled(found_ceiling, limit, best))
    return Ceilings(tuple(found))


def _is_disproved(term: Term, networks: Sequence[Term]) -> bool:
    """Return True if TCP was measured faster than the link's speed: a virtual card may report any speed."""
    return term.source == "link-speed" and any(
        network.source == "measured" and network.gb_s > _SPREAD * term.gb_s for network in networks
    )


def _at_least_seen(term: Term, shape: Shape, bench: BenchResult) -> Term:
    """Return the ceiling, raised to the benchmark's own result where that exceeds an earlier measurement or the link.

    Only with Gloo, whose algorithms are rings: from what NCCL reaches by a tree nothing follows for the link. And a
    message that fits into buffers on the way says nothing of a link's speed.
    """
    if bench.backend != "gloo":
        return term
    largest = max((point.size_bytes for point in bench.points), default=0)
    if term.source == "link-speed" and largest < _LEAST_LARGE:
        return term
    one_gb_s = replace(term, gb_s=1.0)
    seen = max(
        (best.busbw_gb_s / network_ring_gb_s(op, shape, one_gb_s) for op, best in best_points(bench).items()),
        default=0.0,
    )
    if seen <= _SPREAD * term.gb_s:
        return term
    where = ", ".join(sorted({interface for interface, _ in bench.places.values()}))
    claimed = ", more than the speed it claims" if term.source == "link-speed" else ""
    text = f"{gbit(8 * seen)} on {where} (the highest measured there{claimed})"
    return Term(seen, text, "measured", None)


def best_points(bench: BenchResult) -> dict[Op, Point]:
    """Of each op the point with the highest bus bandwidth, of the sizes from half the largest on.

    Below, buffers on the way (of a card, a switch, a traffic shaper) may take a good part of a message at once.
    """
    best: dict[Op, Point] = {}
    for point in bench.points:
        if 2 * point.size_bytes < max(
            measured.size_bytes for measured in bench.points if measured.op == point.op
        ):
            continue
        if point.op not in best or point.busbw_gb_s > best[point.op].busbw_gb_s:
            best[point.op] = point
    return best


def binding_backends(bench: BenchResult, found: Sequence[Ceiling]) -> dict[Op, str]:
    """Return the ops whose bottleneck is the backend and not the link, each with the evidence.

    The link carries more: another op filled it in the same run, or TCP was measured there. Below 1 MiB latency binds,
    and nothing follows from a rate; nor where a rank was late.
    """
    reason_by_op: dict[Op, str] = {}
    full = [limit for limit in found if limit.reached >= _REACHES]
    for limit in found:
        largest = sorted((p for p in bench.points if p.op == limit.op), key=lambda point: point.size_bytes)
        if limit.reached >= _FALLS_SHORT or not largest or largest[-1].size_bytes < _LEAST_LARGE:
            continue
        if bench.backend == "gloo" and full:
            others = ", ".join(f"{reaching.op} {reaching.reached:.0%}" for reaching in full)
            reason_by_op[limit.op] = (
                f"{limit.op} reached {limit.reached:.0%} of what the link carries and {others} in the same run: "
                f"the bottleneck is the backend ({bench.backend}), not the link"
            )
        elif limit.source == "measured" and not slow_ranks(bench.points):
            reason_by_op[limit.op] = (
                f"{limit.op} reached {limit.reached:.0%} of what TCP was measured to carry on the same link: "
                f"the bottleneck is the backend ({bench.backend}) or the CPU, not the link"
            )
    return reason_by_op


def _labelled(unlabelled: Ceiling, limit: Ceiling | None, best: Point) -> Ceiling:
    is_above = unlabelled.reached > 1.02 and unlabelled.source == "link-speed"  # noqa: PLR2004
    label = unlabelled.label or (_ABOVE if is_above else "")
    limit_gb_s = None if limit is None else limit.limit_gb_s
    if limit is not None and limit_gb_s is not None:
        if best.busbw_gb_s > limit_gb_s and best.size_bytes >= _LEAST_LARGE:
            limit = None  # disproved by what was measured
        elif limit_gb_s < unlabelled.busbw_gb_s:
            limit = replace(limit, limit_gb_s=unlabelled.busbw_gb_s, limited_by=unlabelled.binds)
    if limit is None:
        return replace(unlabelled, limit_gb_s=None, limited_by="", label=label)
    return replace(unlabelled, limit_gb_s=limit.limit_gb_s, limited_by=limit.limited_by, label=label)


def _label(bench: BenchResult, op: Op) -> str:
    """Why the bus bandwidth of this op may exceed what a ring reaches; empty where it should not."""
    if bench.backend != "nccl":
        return ""
    name = op.replace("_", "").lower()
    algorithms = {
        words[1].upper()
        for host in {log.host for log in bench.logs}
        for process in processes_of(bench, host)
        for line in process.algorithms
        if len(words := line.split()) > 1 and words[0].lower() == name
    }
    if any(algorithm.startswith("NVLS") for algorithm in algorithms):
        return _NVLS
    if any(algorithm.startswith("COLLNET") for algorithm in algorithms):
        return _SHARP
    if bench.nodes == 2 and COLLECTIVES[op].sums_for_all:  # noqa: PLR2004
        return _TREE if "TREE" in algorithms else _TWO_NODES
    return ""
