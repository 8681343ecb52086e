"""Threads and sockets of NET/Socket on fast Ethernet, as NVIDIA's user guide has them."""

from __future__ import annotations

from collections.abc import Mapping

from ncclcheck.advice.rule import Changes, Rule, value_of
from ncclcheck.advice.setting import everywhere
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import Interface
from ncclcheck.model.formats.prose import listed
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.nccl.network import SOCKET

THREADS, SOCKETS = "NCCL_SOCKET_NTHREADS", "NCCL_NSOCKS_PERTHREAD"
_GUIDE = (
    "NVIDIA's NCCL user guide, NCCL_SOCKET_NTHREADS and NCCL_NSOCKS_PERTHREAD: \"for generic 100G networks, this value "
    'can be manually set to 4", product at most 64; not measured here'
)
_GUIDE_MBPS, _FAST_MBPS = 100_000, 25_000
_TUNED_BY_NCCL = ("ena", "gve")  # AWS and Google: src/transport/net_socket.cc has values of its own for them


def advise_threads(
    snapshot: Snapshot, base: Changes, network: str | None, places: Mapping[str, tuple[str, str]]
) -> tuple[Rule | None, tuple[str, ...]]:
    """4 and 4, where the data go over sockets on links of 100 Gbit/s on every node and nobody has set either."""
    if network != SOCKET or not _has_gpus(snapshot):
        return None, ()
    if any(
        value_of(node.facts, name, base.get(node.host, {})) is not None
        for node in snapshot.nodes
        for name in (THREADS, SOCKETS)
    ):
        return None, ()
    links = [_interface(snapshot, host, name) for host, (name, _) in places.items()]
    if any(link is None or link.kind == "ipoib" or link.driver in _TUNED_BY_NCCL for link in links):
        return None, ()
    slowest = min((_speed(link) for link in links if link is not None), default=0)
    names = listed((name for name, _ in places.values()), 4)
    if slowest < _FAST_MBPS:
        return None, ()
    text = f"NCCL's sockets use one thread and one connection on {names}, which has {slowest / 1000:g} Gbit/s"
    if slowest < _GUIDE_MBPS:
        more = f"{THREADS} and {SOCKETS} of more than 1 may help: not advised, since it was not measured"
        return None, (f"NCCL: {text}; {more}, and NVIDIA's guide names values for 100 Gbit/s only",)
    return Rule(everywhere(snapshot, {THREADS: "4", SOCKETS: "4"}), text, _GUIDE), ()


def _has_gpus(snapshot: Snapshot) -> bool:
    return all(not isinstance(node.facts.gpus, Missing) and node.facts.gpus for node in snapshot.nodes)


def _interface(snapshot: Snapshot, host: str, name: str) -> Interface | None:
    for node, interfaces in snapshot.known("interfaces"):
        if node.host == host:
            return next((interface for interface in interfaces if interface.name == name), None)
    return None


def _speed(interface: Interface) -> int:
    return 0 if isinstance(interface.speed_mbps, Missing) else interface.speed_mbps
