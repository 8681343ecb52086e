"""NCCL_IB_HCA, where NCCL would use ports that do not belong to the fabric between the GPUs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

from msgspec import Struct

from ncclcheck.advice.leftover_settings import common_network
from ncclcheck.advice.rule import NOT_ASKABLE, Changes, Rule, merged, predictions, used_ports, value_of
from ncclcheck.advice.setting import everywhere
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import NodeFacts
from ncclcheck.model.formats.prose import listed
from ncclcheck.model.formats.same_object import SameObject
from ncclcheck.model.hardware import GpuNic, RdmaPort
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.nccl import versions
from ncclcheck.nccl.network import IB
from ncclcheck.nccl.prediction import Prediction
from ncclcheck.nccl.rdma import hca

HCA = "NCCL_IB_HCA"
_NEAR = ("PIX", "PXB")  # below the same PCIe switches, where GPUDirect is used (NCCL_NET_GDR_LEVEL)
_MOST_KINDS = 1024  # of nodes, whose cards are remembered
_MOST_ENTRIES = 16  # of every version's list
_SOURCE = (
    "NCCL src/transport/net_ib.cc (ncclIbInit): without a list, or by a prefix, it takes every ACTIVE port"
)

Ports: TypeAlias = tuple[RdmaPort, ...]


class _UsablePorts(Struct, frozen=True):
    """The ports of a host that belong to the fabric, and why the others do not."""

    ports: Ports
    why: str = ""


def advise_ports(
    snapshot: Snapshot, base: Changes, now: Mapping[str, Prediction]
) -> tuple[Rule | None, tuple[str, ...]]:
    """Return the exact list of ports, where NCCL would use others too on some node.

    On top of `base`, under which NCCL does as in `now`.
    """
    if common_network(now) != IB:
        return None, ()
    used = {node.host: used_ports(node.facts, now[node.host]) for node in snapshot.nodes}
    layer = _common_layer(used)
    if layer is None:
        return None, (
            "NCCL: the RDMA ports of the nodes have no link layer in common, so they cannot connect",
        )
    usable = {
        node.host: _usable_ports(node.facts, used[node.host], now[node.host], layer, base.get(node.host, {}))
        for node in snapshot.nodes
    }
    wrong = [host for host, transport in usable.items() if transport.ports != used[host]]
    if not wrong:
        return None, ()
    for change in _values(snapshot, {host: transport.ports for host, transport in usable.items()}, wrong):
        after = predictions(snapshot, merged(base, change))
        if not isinstance(after, Missing) and all(
            set(used_ports(node.facts, after[node.host])) == set(usable[node.host].ports)
            for node in snapshot.nodes
        ):
            left = hca.names_of(usable[wrong[0]].ports)
            evidence = f"then {wrong[0]} uses {left}; {NOT_ASKABLE}: {_SOURCE}"
            return Rule(change, f"on {listed(wrong, 4)}, {usable[wrong[0]].why}", evidence), ()
    return None, (f"NCCL: on {listed(wrong, 4)}, {usable[wrong[0]].why}, and no list of ports changes that",)


def _common_layer(used: Mapping[str, Ports]) -> str | None:
    """Return the link layer that every node has; of two, the one with the higher rates on the weakest node."""
    rates: dict[str, list[float]] = {}
    for ports in used.values():
        for layer in {port.link_layer for port in ports if isinstance(port.link_layer, str)}:
            rates.setdefault(layer, []).append(sum(_rate(port) for port in ports if port.link_layer == layer))
    common = {layer: min(found) for layer, found in rates.items() if len(found) == len(used)}
    return max(common, key=lambda layer: (common[layer], layer == "InfiniBand"), default=None)


def _usable_ports(
    facts: NodeFacts, used: Ports, now: Prediction, layer: str, changes: Mapping[str, str | None]
) -> _UsablePorts:
    """Only what is certain goes: the other link layer, what a prefix caught, and ports that serve something else."""
    of_layer = tuple(port for port in used if port.link_layer == layer)
    if of_layer != used:
        others = _others(used, of_layer)
        return _UsablePorts(
            of_layer, f"NCCL would mix {others} with ports of {layer}, which cannot connect to each other"
        )
    value = value_of(facts, HCA, changes)
    if value:
        pattern = hca.parse(value, now.version or versions.NEWEST)
        meant = tuple(port for port in used if _is_named(pattern, port))
        named = {port.device for port in meant}
        is_list_of_names = all(entry.name in named for entry in pattern.entries)
        if pattern.exclude or pattern.exact or not is_list_of_names or meant == used:
            return _UsablePorts(used)  # a list that somebody wrote and that does what it says
        return _UsablePorts(meant, f"{HCA}={value} names prefixes, which take {_others(used, meant)} too")
    compute = _compute_ports(used, now.gpu_nic)
    if compute == used:
        return _UsablePorts(used)
    others = _others(used, compute)
    return _UsablePorts(compute, f"NCCL would use {others} too, beside the fabric of {_described(compute)}")


def _is_named(pattern: hca.HcaPattern, port: RdmaPort) -> bool:
    return any(entry.name == port.device and entry.port in {hca.ANY, port.port} for entry in pattern.entries)


def _compute_ports(used: Ports, gpu_nic: Sequence[GpuNic]) -> Ports:
    """Without the ports that have no GPU near them while every GPU has another port near it.

    And without slower ones of another kind of card. A slower port of the same kind is a fault of the link, which a
    check tells: leaving it out would only hide that.
    """
    cards = _cards(SameObject(gpu_nic))
    beside = tuple([port for port in used if port.device in cards.near])
    served: set[str] = set()
    served = served.union(*(cards.near[port.device] for port in beside))
    is_told = cards.nics.issuperset([port.device for port in used])
    if beside and is_told and served == cards.gpus:
        used = beside
    rates = [_rate(port) for port in used]
    fastest = max(rates, default=0.0)
    if rates.count(fastest) == len(used):
        return used
    fast = tuple(port for port, rate in zip(used, rates, strict=True) if rate == fastest)
    kinds = {_kind(port) for port in fast}
    slow = [port for port in used if port not in fast]
    is_certain = all(
        _rate(port) > 0 and _kind(port) is not None and _kind(port) not in kinds for port in slow
    )
    return fast if slow and is_certain and len(fast) >= len(slow) and None not in kinds else used


class _Cards(Struct, frozen=True):
    """The cards whose distance to the GPUs is known; `near`: the GPUs that have each of them near."""

    nics: frozenset[str]
    near: dict[str, frozenset[str]]
    gpus: frozenset[str]


@lru_cache(maxsize=_MOST_KINDS)
def _cards(gpu_nic: SameObject[Sequence[GpuNic]]) -> _Cards:
    """Worked out once for all nodes that are alike."""
    near: dict[str, set[str]] = {}
    for nic in gpu_nic.value:
        if nic.distance in _NEAR:
            near.setdefault(nic.nic, set()).add(nic.gpu)
    nics, gpus = frozenset(nic.nic for nic in gpu_nic.value), frozenset(nic.gpu for nic in gpu_nic.value)
    return _Cards(nics, {nic: frozenset(found) for nic, found in near.items()}, gpus)


def _kind(port: RdmaPort) -> str | None:
    """Return the model of the card: its board, else its chip."""
    known = [sign for sign in (port.board_id, port.hca_type) if isinstance(sign, str) and sign]
    return known[0] if known else None


def _rate(port: RdmaPort) -> float:
    return 0.0 if isinstance(port.rate_gbps, Missing) else port.rate_gbps


def _others(used: Ports, usable: Ports) -> str:
    return _described(tuple(port for port in used if port not in usable))


def _described(ports: Ports) -> str:
    return listed((f"{hca.name_of(port)} ({_rate(port):g} Gbit/s {port.link_layer})" for port in ports), 4)


def _values(snapshot: Snapshot, usable: Mapping[str, Ports], wrong: Sequence[str]) -> list[Changes]:
    """Exact lists to try: one for all nodes, else one for each node that needs it."""
    names: dict[str, str] = {host: _list_of(snapshot, host, ports) for host, ports in usable.items()}
    together = list(dict.fromkeys(entry for text in names.values() for entry in text.split(",")))
    tried = []
    if len(together) <= _MOST_ENTRIES:
        tried.append(everywhere(snapshot, {HCA: f"={','.join(together)}"}))
    tried.append({host: {HCA: f"={text}"} if host in wrong else {} for host, text in names.items()})
    return tried


def _list_of(snapshot: Snapshot, host: str, ports: Ports) -> str:
    """Devices, with the port where a device has others that are not meant."""
    facts = next(node.facts for node in snapshot.nodes if node.host == host)
    every = () if isinstance(facts.rdma, Missing) else facts.rdma.ports
    entries = []
    for port in ports:
        is_whole = all(rdma_port in ports for rdma_port in every if rdma_port.device == port.device)
        entries.append(port.device if is_whole else hca.name_of(port))
    return ",".join(dict.fromkeys(entries))
