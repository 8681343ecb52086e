"""What is said of a rank whose rail, or whose links inside its node, are slower than the others'."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from ncclcheck.checks.hosts import named
from ncclcheck.measure.links.rails import SlowRail, slow_rails
from ncclcheck.model.bench import Isolation
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
    pci_of = {gpu.rank: gpu.health.pci for gpu in isolation.gpus}
    host_of = {rank: host for link in isolation.links for rank, host in (
        (link.from_rank, link.from_host), (link.to_rank, link.to_host))}  # fmt: skip
    for slow in slow_rails(isolation.links):
        if slow.rank not in explained and (slow.is_sure or explained.isdisjoint(slow.peers)):
            yield _finding(slow, pci_of.get(slow.rank, ""), tuple(host_of[rank] for rank in slow.peers))


def _finding(slow: SlowRail, pci: str, peers: tuple[str, ...]) -> Finding:
    gpu = f"its GPU {pci}".rstrip()
    does = " and ".join(
        f"{way} {_GBIT * gb_s:.4g} Gbit/s"
        for way, gb_s in (("sends", slow.sends_gb_s), ("receives", slow.receives_gb_s))
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
    return Finding(
        "warning",
        f"rank {slow.rank} on {slow.host} delays the others: {what}: {gpu} {does} with rank {partners} on "
        f"{named(peers) if slow.place == 'rail' else slow.host}, while {usual} is usual; {sure}",
        hosts,
        (Evidence(hosts, f"transfers of rank {slow.rank} with rank {partners}", does, usual, _LINKS),),
        (_FIX_RAIL if slow.place == "rail" else _FIX_INSIDE,),
    )
