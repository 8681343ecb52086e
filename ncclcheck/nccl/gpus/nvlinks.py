"""What the NVLinks of a node join: all its GPUs, by switches or in a ring, or only some of them, as bridges do.

NCCL makes an edge of the links to each remote device (src/graph/xml.cc, ncclTopoGetXmlFromGpu). One that is no GPU of
the machine counts as a switch, as one does that a virtual machine does not show.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import Gpu, NodeFacts
from ncclcheck.nccl.topology import gpu_addresses

Joined: TypeAlias = Literal["switch", "ring", "some", "none", "unknown"]
_SWITCH = "switch"


def joined(gpus: Sequence[Gpu], facts: NodeFacts) -> Joined:
    """Return how these GPUs of the node are joined by NVLinks; `some`: not so that a ring of NVLinks visits all."""
    numbers = [active_links(gpu) for gpu in gpus]
    if not gpus or None in numbers:
        return "unknown"
    if not any(numbers):
        return "none"
    edges = _edges(gpus, facts)
    if edges is None:
        return "unknown"
    if all(_SWITCH in ends for ends in edges.values()):
        return "switch"
    return "ring" if _has_ring(edges) else "some"


def are_joined(gpu: Gpu, peer: Gpu, facts: NodeFacts) -> bool:
    """Return True if NVLinks lead from one GPU to the other, directly or through switches; also where they may."""
    how = joined((gpu, peer), facts)
    return how in ("switch", "ring") or (how == "unknown" and bool(active_links(gpu) and active_links(peer)))


def active_links(gpu: Gpu) -> int | None:
    """Return how many NVLinks of a GPU are active; None where that is not known."""
    links = gpu.state.nvlinks
    return None if isinstance(links, Missing) else sum(link.active is True for link in links)


def _edges(gpus: Sequence[Gpu], facts: NodeFacts) -> Mapping[str, set[str]] | None:
    """Return for each of the GPUs which others its links lead to, and whether to a switch; None where not known."""
    listed = () if isinstance(facts.gpus, Missing) else facts.gpus
    known = {gpu.pci for gpu in listed} | (
        set() if isinstance(facts.pci, Missing) else set(gpu_addresses(facts.pci))
    )
    edges: dict[str, set[str]] = {}
    for gpu in gpus:
        links = () if isinstance(gpu.state.nvlinks, Missing) else gpu.state.nvlinks
        remotes = {link.remote for link in links if link.active is True}
        if isinstance(gpu.pci, Missing) or any(isinstance(remote, Missing) for remote in remotes):
            return None
        edges[gpu.pci] = {
            remote if remote in known else _SWITCH for remote in remotes if isinstance(remote, str)
        }
    return edges


def _has_ring(edges: Mapping[str, set[str]]) -> bool:
    """Return True if a ring of links visits each GPU once; of two GPUs a link is one."""
    first = next(iter(edges))

    def closes(path: tuple[str, ...]) -> bool:
        if len(path) == len(edges):
            return first in edges[path[-1]] or len(path) == 1
        return any(closes((*path, peer)) for peer in edges[path[-1]] if peer in edges and peer not in path)

    return closes((first,))


__all__ = ["Joined", "active_links", "are_joined", "joined"]
