"""How many network devices NET/IB makes of its ports: ports of one card can be one device."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.hardware import RdmaPort
from ncclcheck.nccl import topology, versions
from ncclcheck.nccl.number import number
from ncclcheck.nccl.rdma import hca
from ncclcheck.nccl.topology import Position

Device: TypeAlias = tuple[RdmaPort, ...]
# NCCL_NET_MERGE_LEVEL by distance; what lies between PXB and PHB reaches as far as PXB. src/graph/topo.cc
_LEVELS = {"LOC": 0, "PORT": 1, "PIX": 2, "PXB": 3, "P2C": 3, "PXN": 3, "PHB": 4, "SYS": 5}
_PATHS = {"PIX": 2, "PXB": 3, "PHB": 4, "SYS": 5}
_DISCONNECTED = 9
_MOST_PORTS = 4  # NCCL_NET_MAX_DEVS_PER_NIC
_MOST_PORTS_BEFORE_2_24 = 2


def network_devices(
    ports: Sequence[RdmaPort],
    environment: Mapping[str, str],
    version: str,
    places: Mapping[str, Position],
) -> Fact[tuple[Device, ...]]:
    """Return the ports in groups, each one network device.

    Missing where a setting is not modelled or an address not read.
    Not before 2.20. Up to 2.23 NET/IB puts two ports of a card together (and from 2.22 none where cards differ); from
    2.24 the topology search puts up to four together that are within NCCL_NET_MERGE_LEVEL. Ports of different link
    layers never go together. NCCL_IB_MERGE_NICS=0 keeps all apart.
    """
    rules = versions.parse(version)
    alone = tuple((port,) for port in ports)
    is_off = number(environment.get("NCCL_IB_MERGE_NICS"), 1, version) == 0
    if rules < versions.IB_PORTS_MERGED_SINCE or is_off or not ports[1:]:
        return alone
    unread = [port for port in ports if isinstance(port.pci, Missing)]
    if unread:
        return Missing("absent", f"the PCI address of {hca.name_of(unread[0])} was not read")
    merges_vfs = number(environment.get("NCCL_IB_MERGE_VFS"), 1, version) != 0
    if rules < versions.MERGED_BY_TOPOLOGY_SINCE:
        return _by_card(ports, merges_vfs, one_size=rules >= versions.MIXED_CARDS_NOT_MERGED_SINCE)
    return _by_topology(ports, environment, merges_vfs, places)


def _by_topology(
    ports: Sequence[RdmaPort],
    environment: Mapping[str, str],
    merges_vfs: bool,
    places: Mapping[str, Position],
) -> Fact[tuple[Device, ...]]:
    if file := environment.get(topology.TOPOLOGY_FILE):
        return Missing("unsupported", f"NCCL takes the PCI bus from {file}, which ncclcheck does not read")
    for name in ("NCCL_NET_FORCE_MERGE", "NCCL_NET_MERGE_POLICY"):
        if name in environment:
            return Missing(
                "unsupported", f"{name} is set, whose effect on the number of devices is not modelled"
            )
    level = _LEVELS.get(environment.get("NCCL_NET_MERGE_LEVEL", "PORT"))
    if level is None:
        wrong = environment["NCCL_NET_MERGE_LEVEL"]
        return Missing("unsupported", f"NCCL_NET_MERGE_LEVEL={wrong} is no level that NCCL knows")
    cards = [_card(port, merges_vfs) for port in ports]
    if level <= _LEVELS["PORT"]:
        return _merge(ports, lambda first, second: level == _LEVELS["PORT"] and cards[first] == cards[second])
    steps = [[_steps(first, rdma_port, merges_vfs, places) for rdma_port in ports] for first in ports]
    if any(step is None for row in steps for step in row):
        return Missing("absent", "the PCI bus was not read")
    return _merge(ports, lambda first, second: (steps[first][second] or _DISCONNECTED) <= level)


def _steps(
    port: RdmaPort, rdma_port: RdmaPort, merges_vfs: bool, places: Mapping[str, Position]
) -> int | None:
    if _card(port, merges_vfs) == _card(rdma_port, merges_vfs):
        return _LEVELS["PORT"]
    first, second = topology.nic_position(port, places), topology.nic_position(rdma_port, places)
    path = topology.distance(first, second) if first and second else None
    return None if path is None else _PATHS[path]


def _merge(ports: Sequence[RdmaPort], is_near: Callable[[int, int], bool]) -> tuple[Device, ...]:
    """ncclTopoAutoMerge: each port takes those near it, at most four; a group of mixed link layers falls apart."""
    rest = list(range(len(ports)))
    kept_apart: set[tuple[int, int]] = set()
    groups: dict[int, Device] = {}
    while rest:
        root = rest[0]
        near = [index for index in rest[1:] if is_near(root, index) and (root, index) not in kept_apart]
        group = [root, *near][:_MOST_PORTS]
        if len({ports[index].link_layer for index in group}) > 1:
            kept_apart |= {pair for index in group[1:] for pair in ((root, index), (index, root))}
            continue
        groups[root] = tuple(ports[index] for index in group)
        rest = [index for index in rest if index not in group]
    return tuple(groups[root] for root in sorted(groups))


def _by_card(ports: Sequence[RdmaPort], merges_vfs: bool, *, one_size: bool) -> tuple[Device, ...]:
    """ncclIbFindMatchingDev: same card, same link layer, at most two; with `one_size` all alike or none."""
    groups: list[list[RdmaPort]] = []
    for port in ports:
        for group in groups:
            is_same_card = _card(group[0], merges_vfs) == _card(port, merges_vfs)
            if (
                len(group) < _MOST_PORTS_BEFORE_2_24
                and is_same_card
                and group[0].link_layer == port.link_layer
            ):
                group.append(port)
                break
        else:
            groups.append([port])
    if one_size and len({len(group) for group in groups}) > 1:
        return tuple((port,) for port in ports)
    return tuple(tuple(group) for group in groups)


def _card(port: RdmaPort, merges_vfs: bool) -> str:
    address = "" if isinstance(port.pci, Missing) else port.pci
    return topology.card_of(address, merge_virtual_functions=merges_vfs)
