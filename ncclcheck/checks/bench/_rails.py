"""What is said of a rank whose rail, or whose links inside its node, are slower than the others'."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet

from ncclcheck.checks.bench._gpus import nvml_evidence
from ncclcheck.checks.hosts import named
from ncclcheck.measure.links.rails import SlowRail, slow_rails
from ncclcheck.model.bench import GpuHealth, Isolation
from ncclcheck.model.finding import Evidence, Finding, Fix

_LINKS = "transfers between GPUs, timed by them, all rails at the same time, after the collectives"
_GBIT = 8.0
_FIX_RAIL = Fix(
    "compare the network card that is nearest to this GPU, its link and its PCIe slot with the others'",
    ("nvidia-smi topo -m", "ibstat", "ethtool IFACE"),
)
_FIX_INSIDE = Fix(
    "compare the NVLinks and the PCIe link of this GPU with the others'", ("nvidia-smi nvlink -s -e",)
)


def rail_findings(isolation: Isolation, explained: AbstractSet[int]) -> Iterator[Finding]:
    """Yield a finding for each slow rail; a rank in `explained` is slow for another reason, and so are its partners."""
    health_of = {gpu.rank: gpu.health for gpu in isolation.gpus}
    host_of = {rank: host for link in isolation.links for rank, host in (
        (link.from_rank, link.from_host), (link.to_rank, link.to_host))}  # fmt: skip
    for slow in _unexplained(isolation, explained):
        yield _finding(slow, health_of, host_of)


def rail_ranks(isolation: Isolation, explained: AbstractSet[int]) -> frozenset[int]:
    """Return the ranks whose GPUs these findings are about: what NVML says of them is evidence there."""
    slow = list(_unexplained(isolation, explained))
    return frozenset(rank for rail in slow for rank in _ends(rail))


def _unexplained(isolation: Isolation, explained: AbstractSet[int]) -> Iterator[SlowRail]:
    for slow in slow_rails(isolation.links):
        if slow.rank not in explained and (slow.is_sure or explained.isdisjoint(slow.peers)):
            yield slow


def _ends(slow: SlowRail) -> tuple[int, ...]:
    """Return the ranks of which one is at fault."""
    return (slow.rank,) if slow.is_sure else (slow.rank, *slow.peers)


def _finding(slow: SlowRail, health_of: Mapping[int, GpuHealth], host_of: Mapping[int, str]) -> Finding:
    peers = tuple(host_of[rank] for rank in slow.peers)
    gpu = f"its GPU {health_of.get(slow.rank, GpuHealth()).pci}".rstrip()
    seen = [
        Evidence(
            (host_of[rank],), f"{piece.subject} of rank {rank}", piece.observed, piece.expected, piece.source
        )
        for rank in _ends(slow)
        for piece in nvml_evidence(host_of[rank], health_of.get(rank, GpuHealth()))
    ]
    does = " and ".join(
        f"{direction} {_GBIT * gb_s:.4g} Gbit/s"
        for direction, gb_s in (("sends", slow.sends_gb_s), ("receives", slow.receives_gb_s))
        if gb_s is not None
    )
    usual = f"{_GBIT * slow.usual_gb_s:.4g} Gbit/s"
    what = "slow rail" if slow.place == "rail" else "slow links inside the node"
    hosts = (slow.host,) if slow.is_sure else tuple(dict.fromkeys((slow.host, *peers)))
    partners = ", ".join(str(rank) for rank in slow.peers)
    sure = (
        "its partners are fast with others"
        if slow.is_sure
        else f"either end, rank {slow.rank} or rank {partners}, or the way between them"
    )
    meanwhile = "".join(f"; NVML: {piece.subject}: {piece.observed}" for piece in seen)
    return Finding(
        "warning",
        f"rank {slow.rank} on {slow.host} delays the others: {what}: {gpu} {does} with rank {partners} on "
        f"{named(peers) if slow.place == 'rail' else slow.host}, while {usual} is usual; {sure}{meanwhile}",
        hosts,
        (Evidence(hosts, f"transfers of rank {slow.rank} with rank {partners}", does, usual, _LINKS), *seen),
        (_FIX_RAIL if slow.place == "rail" else _FIX_INSIDE,),
    )
