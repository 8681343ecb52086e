"""The interface that NCCL uses on every node, found again among the node's interfaces."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from ncclcheck.checks.hosts import not_reported
from ncclcheck.checks.subject_cache import once_per_subject
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.facts import Interface, NodeFacts
from ncclcheck.model.finding import NotKnown
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.nccl.prediction import NEEDED, chosen_interface


class Chosen(Struct, frozen=True):
    """What NCCL uses on one node."""

    host: str
    interface: Interface
    address: str

    @property
    def name(self) -> str:
        """The name of the interface."""
        return self.interface.name

    @property
    def prefix_length(self) -> int:
        """The length of the subnet prefix of the address."""
        lengths = [entry.prefix_length for entry in self.interface.addresses if entry.address == self.address]
        return lengths[0] if lengths else 128


@once_per_subject
def chosen(snapshot: Snapshot) -> tuple[Chosen, ...]:
    """Return the interface that NCCL uses, for every node where it is known."""
    return tuple(
        Chosen(host, *choice) for host, choice in _choices(snapshot) if not isinstance(choice, Missing)
    )


def not_chosen(snapshot: Snapshot) -> Iterator[NotKnown]:
    """Yield the nodes where the interface that NCCL uses is not known, each with the reason."""
    yield from _unknown(snapshot)
    yield from not_reported(snapshot)


def unread_section(facts: NodeFacts) -> str:
    """Return the section without which it is not known what NCCL uses, if it could not be read; else nothing."""
    return next((section for section in NEEDED if isinstance(getattr(facts, section), Missing)), "")


@once_per_subject
def _unknown(snapshot: Snapshot) -> tuple[NotKnown, ...]:
    return tuple(
        NotKnown(f"which interface NCCL uses is not known ({choice})", (host,), unread_section(node.facts))
        for node, (host, choice) in zip(snapshot.nodes, _choices(snapshot), strict=True)
        if isinstance(choice, Missing)
    )


@once_per_subject
def _choices(snapshot: Snapshot) -> tuple[tuple[str, Fact[tuple[Interface, str]]], ...]:
    return tuple((node.host, _choice(node.facts)) for node in snapshot.nodes)


def _choice(facts: NodeFacts) -> Fact[tuple[Interface, str]]:
    choice = chosen_interface(facts)
    if isinstance(choice, Missing):
        return choice
    if isinstance(facts.interfaces, Missing):
        return facts.interfaces
    name, address = choice
    owner = owner_of(facts.interfaces, address, name)
    return (
        (owner, address) if owner else Missing("error", f"{name} with {address} is not among its interfaces")
    )


def owner_of(interfaces: tuple[Interface, ...], address: str, name: str) -> Interface | None:
    """Return the interface with that address (the named one, where several have it), else the one of that name."""
    owners = [
        interface
        for interface in interfaces
        if any(candidate.address == address for candidate in interface.addresses)
    ]
    by_name = [interface for interface in interfaces if interface.name == name]
    both = [interface for interface in owners if interface.name == name]
    return next(iter(both or owners or by_name), None)
