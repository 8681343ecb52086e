"""Nodes of one kind: thousands of equal nodes are judged as one.

A check may say which sections it reads (`alike`). It first judges one node of each kind: nodes are of one kind if these
sections are equal but for serial numbers, GUIDs, LIDs and the addresses of hosts in a subnet. Where it has nothing
to say of these nodes, it has nothing to say of any; else it judges all of them, or, if what it says is `by_node` or
only what is not known of some nodes, the nodes of the kinds that it named. That holds for checks whose answer is empty
or not whatever the number of nodes of a kind.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Set
from functools import lru_cache
from operator import attrgetter
from typing import Any

from msgspec.structs import replace

from ncclcheck.checks.subject_cache import once_per_subject
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import Address, Gpu, Interface, NcclChoice, NodeFacts
from ncclcheck.model.formats.addresses import network
from ncclcheck.model.formats.same_object import SameObject
from ncclcheck.model.gpu import GpuWork
from ncclcheck.model.hardware import Rdma
from ncclcheck.model.snapshot import Node, Snapshot
from ncclcheck.nccl.alike import kind_of_ports

_READ_OF_GPU = attrgetter(*(name for name in Gpu.__struct_fields__ if name not in ("uuid", "state")))
_READ_OF_INTERFACE = attrgetter(*(name for name in Interface.__struct_fields__ if name != "addresses"))
_READ_OF_WORK = attrgetter(*(name for name in GpuWork.__struct_fields__ if name != "uuid"))


_MOST_REMEMBERED = 4096


@once_per_subject
def one_of_each_kind(snapshot: Snapshot, sections: tuple[str, ...]) -> Snapshot:
    """Return the snapshot with one node of each kind, which has these sections and no others."""
    first: dict[tuple[int, ...], Node] = {}
    for kind, node in zip(_kinds_of_nodes(snapshot, sections), snapshot.nodes, strict=True):
        if kind not in first:
            first[kind] = node
    return replace(snapshot, nodes=tuple(_narrowed(node, sections) for node in first.values()))


def without_silent_kinds(snapshot: Snapshot, sections: tuple[str, ...], hosts: Set[str]) -> Snapshot:
    """Return the snapshot with all nodes of the kinds of `hosts`, and the first node of each other kind."""
    kinds = _kinds_of_nodes(snapshot, sections)
    named_kinds = {kind for kind, node in zip(kinds, snapshot.nodes, strict=True) if node.host in hosts}
    nodes, seen = [], set()
    for kind, node in zip(kinds, snapshot.nodes, strict=True):
        if kind in named_kinds or kind not in seen:
            seen.add(kind)
            nodes.append(node)
    return replace(snapshot, nodes=tuple(nodes))


def _kinds_of_nodes(snapshot: Snapshot, sections: tuple[str, ...]) -> list[tuple[int, ...]]:
    return list(zip(*(_kinds(snapshot, section) for section in sections), strict=True))


@once_per_subject
def _kinds(snapshot: Snapshot, section: str) -> tuple[int, ...]:
    """Return the number of the kind of each node. Sections that were decoded once are one object."""
    kind_of = _KINDS.get(section, _same_object)
    # The environment of a further rank is in no section of its node.
    apart = {rank.host for rank in snapshot.ranks if rank.differs} if section == "environment" else ()
    numbers: dict[Hashable, int] = {}
    found = []
    for node in snapshot.nodes:
        facts = node.facts
        value = getattr(facts, section)
        kind = value if isinstance(value, Missing) else kind_of(value, facts)
        found.append(numbers.setdefault(node.host if node.host in apart else kind, len(numbers)))
    return tuple(found)


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
    return kind_of_ports(SameObject(rdma)), rest, tuple(rdma.unread.items())


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


def _interfaces(interfaces: tuple[Interface, ...], facts: NodeFacts) -> Hashable:
    values = "" if isinstance(facts.environment, Missing) else _values(SameObject(facts.environment))
    addresses = [
        address.address.partition("%")[0] for interface in interfaces for address in interface.addresses
    ]
    is_named = any(address in values for address in addresses)
    return (
        id(interfaces) if is_named else tuple([_interface(SameObject(interface)) for interface in interfaces])
    )


@lru_cache(maxsize=_MOST_REMEMBERED)
def _values(environment: SameObject[dict[str, str]]) -> str:
    return "\n".join(environment.value.values())


@lru_cache(maxsize=_MOST_REMEMBERED)
def _interface(same: SameObject[Interface]) -> Hashable:
    """Return what makes interfaces alike. Those that were decoded once are looked at once, as lo of all nodes."""
    interface = same.value
    addresses = [
        (_subnet(address), address.family, address.prefix_length, address.label, address.scope_id)
        for address in interface.addresses
    ]
    return _READ_OF_INTERFACE(interface), tuple(addresses)


def _subnet(address: Address) -> Hashable:
    """Return the subnet; of an address that no other host has, the address."""
    try:
        return network(address.address, address.prefix_length)
    except ValueError:  # facts of another node can hold anything
        return address.address


_KINDS: dict[str, Callable[[Any, NodeFacts], Hashable]] = {
    "gpus": _gpus,
    "gpu_work": _gpu_work,
    "rdma": _rdma,
    "nccl": _nccl,
    "interfaces": _interfaces,
}
