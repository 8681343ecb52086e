"""Nodes of one kind: thousands of equal nodes are judged as one.

A check may say which sections it reads (`alike`). It first judges one node of each kind: nodes are of one kind if these
sections are equal but for serial numbers, GUIDs, LIDs and addresses. Where it has nothing to say of these nodes, it has
nothing to say of any; else it judges all of them. That holds for checks whose answer is empty or not whatever the
number of nodes of a kind.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from operator import attrgetter
from typing import Any

from msgspec.structs import replace

from ncclcheck.checks.snapshot_cache import once_per_snapshot
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import Gpu, NcclChoice, NodeFacts
from ncclcheck.model.gpu import GpuWork
from ncclcheck.model.hardware import Rdma, RdmaPort
from ncclcheck.model.snapshot import Node, Snapshot

_OWN_OF_PORT = ("lid", "node_guid", "gids")
_READ_OF_PORT = attrgetter(*(name for name in RdmaPort.__struct_fields__ if name not in _OWN_OF_PORT))
_READ_OF_GPU = attrgetter(*(name for name in Gpu.__struct_fields__ if name not in ("uuid", "state")))
_READ_OF_WORK = attrgetter(*(name for name in GpuWork.__struct_fields__ if name != "uuid"))


@once_per_snapshot
def one_of_each_kind(snapshot: Snapshot, sections: tuple[str, ...]) -> Snapshot:
    """Return the snapshot with one node of each kind, which has these sections and no others."""
    first: dict[Hashable, Node] = {}
    for node, kind in zip(
        snapshot.nodes, zip(*(_kinds(snapshot, section) for section in sections), strict=True), strict=True
    ):
        first.setdefault(kind, node)
    return replace(snapshot, nodes=tuple(_narrowed(node, sections) for node in first.values()))


@once_per_snapshot
def _kinds(snapshot: Snapshot, section: str) -> tuple[Hashable, ...]:
    """Return what is equal for nodes of one kind, by node. Sections that were decoded once are one object."""
    kind_of = _KINDS.get(section, _same_object)
    values = ((getattr(node.facts, section), node.facts) for node in snapshot.nodes)
    return tuple(value if isinstance(value, Missing) else kind_of(value, facts) for value, facts in values)


def _narrowed(node: Node, sections: tuple[str, ...]) -> Node:
    """Return the node without what its kind does not tell: a check that reads it all the same finds it missing."""
    facts: dict[str, Any] = {name: getattr(node.facts, name) for name in ("launch", *sections)}
    if isinstance(rdma := facts.get("rdma"), Rdma):
        ports = tuple(replace(port, lid=0, node_guid="", gids=()) for port in rdma.ports)
        facts["rdma"] = replace(rdma, ports=ports)
    if isinstance(nccl := facts.get("nccl"), NcclChoice):
        facts["nccl"] = NcclChoice(nccl.asked, nccl.config_files, nccl.home_set)
    return replace(node, facts=NodeFacts(**facts))


def _same_object(value: object, _: NodeFacts) -> Hashable:
    return id(value)


def _gpus(gpus: tuple[Gpu, ...], _: NodeFacts) -> Hashable:
    return tuple([(id(gpu.state), _READ_OF_GPU(gpu), isinstance(gpu.uuid, Missing)) for gpu in gpus])


def _gpu_work(works: tuple[GpuWork, ...], facts: NodeFacts) -> Hashable:
    gpus = () if isinstance(facts.gpus, Missing) else facts.gpus
    places = {gpu.uuid: place for place, gpu in enumerate(gpus) if not isinstance(gpu.uuid, Missing)}
    return tuple(
        [
            (_READ_OF_WORK(work), work.uuid if isinstance(work.uuid, Missing) else places.get(work.uuid))
            for work in works
        ]
    )


def _rdma(rdma: Rdma, _: NodeFacts) -> Hashable:
    rest = rdma.device_files, rdma.peer_memory, rdma.unusable_files, rdma.verbs_library
    return tuple([_READ_OF_PORT(port) for port in rdma.ports]), rest, tuple(rdma.unread.items())


def _nccl(nccl: NcclChoice, _: NodeFacts) -> Hashable:
    files = tuple(
        [
            (
                file.path,
                file.settings if isinstance(file.settings, Missing) else tuple(file.settings.items()),
            )
            for file in nccl.config_files
        ]
    )
    asked = nccl.asked if isinstance(nccl.asked, Missing) else nccl.asked.version
    return asked, files, nccl.home_set


_KINDS: dict[str, Callable[[Any, NodeFacts], Hashable]] = {
    "gpus": _gpus,
    "gpu_work": _gpu_work,
    "rdma": _rdma,
    "nccl": _nccl,
}
