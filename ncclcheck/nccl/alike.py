"""Nodes that are alike for NCCL: what the model says of one holds for all of them, with their own addresses in it.

Nodes of a cluster differ in their addresses, GUIDs and LIDs, on which no rule of NCCL depends, except where a variable
names addresses: such nodes are not alike. To run the model costs a thousand times what it costs to tell that two nodes
are alike.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable
from functools import lru_cache, wraps
from ipaddress import IPv4Address
from operator import attrgetter
from typing import Any, Concatenate, ParamSpec

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.facts import Family, Interface, NcclChoice, NcclConfigFile, NodeFacts
from ncclcheck.model.formats.same_object import SameObject
from ncclcheck.model.hardware import Gid, Rdma, RdmaPort

P = ParamSpec("P")

# Their values are compared with addresses, or name hosts.
_OF_ADDRESSES = ("NCCL_COMM_ID", "NCCL_IB_ADDR_RANGE")
_RESERVED = 0xF0000000  # 240.0.0.0
_LOCAL = ("127.", "0.", "::", "169.254.", "fe80:", "fe9", "fea", "feb")
_MAPPED_GID = "0000:0000:0000:0000:0000:ffff:"
_LINK_LOCAL_GID = "fe80:0000:0000:0000:"
_READ_OF_PORT = attrgetter(
    *(name for name in RdmaPort.__struct_fields__ if name not in ("lid", "node_guid", "gids"))
)
_MOST_KINDS = 4096  # of nodes; more are worked out one by one


class _Alike(Struct, frozen=True):
    """What is the same for nodes that are alike, and the addresses in which they differ, in one order."""

    kind: object  # the same one for all nodes that are alike
    addresses: tuple[str, ...]


class _Text(Struct, frozen=True):
    """A text that names addresses: its parts, and the places of those of them that are addresses, by number."""

    parts: tuple[str, ...]
    named: tuple[tuple[int, int], ...]

    def with_addresses(self, addresses: tuple[str, ...]) -> str:
        """Return the text of another node."""
        parts = list(self.parts)
        for place, number in self.named:
            parts[place] = addresses[number]
        return "".join(parts)


class _Known(Struct, frozen=True):
    """The result for the first node of a kind."""

    addresses: tuple[str, ...]
    result: Any
    naming: dict[str, _Text | tuple[_Text, ...]]  # the fields that name one of the addresses


def once_per_kind(
    function: Callable[Concatenate[NodeFacts, P], Fact[Any]],
) -> Callable[Concatenate[NodeFacts, P], Fact[Any]]:
    """Let a function of the facts of a node that returns a Prediction work once for all nodes that are alike.

    Its further arguments must be hashable, and are no addresses.
    """
    known: dict[Hashable, _Known | None] = {}

    @wraps(function)
    def remembered(facts: NodeFacts, *arguments: P.args, **named: P.kwargs) -> Fact[Any]:
        node = _alike(SameObject(facts))
        if node is None or named or _names_addresses(arguments):
            return function(facts, *arguments, **named)
        key = node.kind, arguments
        if key not in known:
            result = function(facts, *arguments, **named)
            if len(known) < _MOST_KINDS:
                known[key] = _first(node, result)
            return result
        first = known[key]
        return function(facts, *arguments, **named) if first is None else _renamed(first, node.addresses)

    return remembered  # type: ignore[return-value]  # mypy takes the first parameter as a named one


def _names_addresses(arguments: Hashable) -> bool:
    return any(name in repr(arguments) for name in _OF_ADDRESSES) if arguments else False


def _first(node: _Alike, result: Fact[Any]) -> _Known | None:
    """Return what is kept of the first node of a kind; None where the result names what is not renamed."""
    if isinstance(result, Missing):
        return None
    if any("fe80" in text for text in _texts(result).values() for text in _flat(text)):
        return None
    names = "|".join(re.escape(address) for address in sorted(node.addresses, key=len, reverse=True))
    pattern = re.compile(rf"(?<![\w.])({names})(?![\w:]|\.\w)" if names else r"(?!)()")
    numbers = {address: number for number, address in enumerate(node.addresses)}

    def split(text: str) -> _Text:
        parts = pattern.split(text)  # every second one is an address
        named = [(place, numbers[parts[place]]) for place in range(1, len(parts), 2)]
        return _Text(tuple(parts), tuple(named))

    naming = {
        name: split(text) if isinstance(text, str) else tuple(map(split, text))
        for name, text in _texts(result).items()
        if any(map(pattern.search, _flat(text)))
    }
    return _Known(node.addresses, result, naming)


def _texts(result: Any) -> dict[str, Any]:
    """Return the fields that are a text, or several."""
    values = {name: getattr(result, name) for name in result.__struct_fields__}
    return {
        name: value
        for name, value in values.items()
        if isinstance(value, str) or (isinstance(value, tuple) and value and isinstance(value[0], str))
    }


def _flat(text: str | tuple[str, ...]) -> tuple[str, ...]:
    return (text,) if isinstance(text, str) else text


def _renamed(first: _Known, addresses: tuple[str, ...]) -> Any:
    if addresses == first.addresses:
        return first.result
    changed = {
        name: text.with_addresses(addresses)
        if isinstance(text, _Text)
        else tuple([part.with_addresses(addresses) for part in text])
        for name, text in first.naming.items()
    }
    return replace(first.result, **changed)


@lru_cache(maxsize=1 << 15)
def _alike(node: SameObject[NodeFacts]) -> _Alike | None:
    """Return the key of the node's kind: nodes with one key are alike. None where this node has none."""
    facts = node.value
    if isinstance(facts.environment, Missing) or isinstance(facts.interfaces, Missing):
        return None
    if isinstance(facts.nccl, Missing):
        return None
    environment = {name: value for name, value in facts.environment.items() if name.startswith("NCCL_")}
    files = tuple((file.path, _settings_in(file)) for file in facts.nccl.config_files)
    read = [environment, *(dict(settings) for _, settings in files if not isinstance(settings, Missing))]
    if any(name in settings for name in _OF_ADDRESSES for settings in read):
        return None
    placeholders: dict[str, str] = {}
    for interface in facts.interfaces:
        for address in interface.addresses:
            if not address.address.startswith(_LOCAL):
                placeholders.setdefault(address.address, _placeholder(len(placeholders), address.family))
    software = facts.software
    key = (
        tuple(sorted(environment.items())),
        files,
        tuple(_interface(interface, placeholders) for interface in facts.interfaces),
        _nccl(facts.nccl, placeholders),
        facts.rdma if isinstance(facts.rdma, Missing) else _rdma(facts.rdma, placeholders),
        facts.pci if isinstance(facts.pci, Missing) else SameObject(facts.pci),
        facts.kernel,
        None if isinstance(software, Missing) else (software.nccl, software.torch_nccl),
    )
    try:
        return _Alike(_kind(key), tuple(placeholders))
    except TypeError:  # a mapping somewhere
        return None


def _placeholder(number: int, family: Family) -> str:
    """Return an address that stands for one of a node: reserved ones (RFC 1112 section 4, RFC 6666)."""
    return str(IPv4Address(_RESERVED + number)) if family == "inet" else f"100::{number:x}"


@lru_cache(maxsize=_MOST_KINDS)
def _kind(_key: Hashable) -> object:
    """Return an object that stands for the key: a key of so many parts takes long to hash, and is asked for often."""
    return object()


def _settings_in(file: NcclConfigFile) -> Fact[tuple[tuple[str, str], ...]]:
    """Return the settings of a config file, or why they are not known."""
    return file.settings if isinstance(file.settings, Missing) else tuple(file.settings.items())


def _interface(interface: Interface, placeholders: dict[str, str]) -> Hashable:
    if not any(
        address.address in placeholders or address.address.startswith("fe") for address in interface.addresses
    ):
        return _without_own_address(SameObject(interface))
    addresses = tuple(
        (
            placeholders.get(address.address) or (address.address if address.family == "inet" else "<link>"),
            address.family,
            address.prefix_length,
            address.label,
            address.scope_id,
        )
        for address in interface.addresses
    )
    return replace(interface, addresses=()), addresses


@lru_cache(maxsize=1 << 15)
def _without_own_address(interface: SameObject[Interface]) -> object:
    return _kind(interface.value)


def _nccl(nccl: NcclChoice, placeholders: dict[str, str]) -> Hashable:
    rest = (nccl.home_set, nccl.libraries, nccl.plugins)
    if isinstance(nccl.asked, Missing):
        return nccl.asked, rest
    message = nccl.asked.message
    for name, placeholder in placeholders.items():
        message = message.replace(f":{name}<", f":{placeholder}<")
    address = nccl.asked.address
    token = None if address is None else placeholders.get(address, address)
    return replace(nccl.asked, port=None, message=message, address=token), rest


def _rdma(rdma: Rdma, placeholders: dict[str, str]) -> Hashable:
    rest = (rdma.device_files, rdma.peer_memory, rdma.unusable_files, rdma.verbs_library)
    gids = tuple([_gids(port, placeholders) for port in rdma.ports])
    return kind_of_ports(SameObject(rdma)), gids, rest, tuple(rdma.unread.items())


@lru_cache(maxsize=1 << 15)
def kind_of_ports(rdma: SameObject[Rdma]) -> object:
    """Return the same object for all nodes whose ports differ in LIDs, GUIDs and GIDs alone."""
    return _kind(tuple([_READ_OF_PORT(port) for port in rdma.value.ports]))


def _gids(port: RdmaPort, placeholders: dict[str, str]) -> Hashable:
    return (
        port.gids if isinstance(port.gids, Missing) else tuple([_gid(gid, placeholders) for gid in port.gids])
    )


def _gid(gid: Gid, placeholders: dict[str, str]) -> Hashable:
    text = gid.gid.lower()
    if text.startswith(_LINK_LOCAL_GID):
        return replace(gid, gid="<link>")
    if text.startswith(_MAPPED_GID) and len(text) == len(_MAPPED_GID) + 9:
        digits = text[len(_MAPPED_GID) :].replace(":", "")
        try:
            address = ".".join(str(byte) for byte in bytes.fromhex(digits))
        except ValueError:
            return gid
        return replace(gid, gid=placeholders.setdefault(address, f"<{len(placeholders)}mapped>"))
    return gid
