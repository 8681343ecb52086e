"""NCCL_IB_GID_INDEX on RoCE: the index of the RoCE v2 address of IPv4, or its removal where NCCL finds that itself."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Mapping

from ncclcheck.advice.leftover_settings import common_network
from ncclcheck.advice.rule import NOT_ASKABLE, Changes, Rule, merged, predictions, used_ports, value_of
from ncclcheck.advice.setting import everywhere, removal_of
from ncclcheck.model.fact import Missing
from ncclcheck.model.formats.prose import listed
from ncclcheck.model.hardware import Gid, RdmaPort
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.nccl import versions
from ncclcheck.nccl.network import IB
from ncclcheck.nccl.prediction import Prediction
from ncclcheck.nccl.rdma import hca

GID_INDEX = "NCCL_IB_GID_INDEX"
_SOURCE = "NCCL src/transport/net_ib.cc (ncclIbGetGidIndex); before 2.21 the default is 0, usually link-local RoCE v1"


def advise_gids(
    snapshot: Snapshot, base: Changes, now: Mapping[str, Prediction]
) -> tuple[Rule | None, tuple[str, ...]]:
    """Return the settings that make every RoCE port of every node use its RoCE v2 address of IPv4.

    On top of `base`, under which NCCL does as in `now`.
    """
    if common_network(now) != IB or not _is_roce(snapshot, now):
        return None, ()
    wrong = _wrong(snapshot, now)
    forced = any(value_of(node.facts, GID_INDEX, base.get(node.host, {})) for node in snapshot.nodes)
    if not wrong:
        if forced and all(_finds_it_itself(prediction) for prediction in now.values()):
            return None, (
                f"NCCL: {GID_INDEX} is set and right, but obsolete from NCCL 2.21 on, which finds it itself",
            )
        return None, ()
    host, port, index = wrong[0]
    why = f"on {listed((host for host, _, _ in wrong), 4)}, NCCL would use {_words(port, index)}"
    for change in _changes(snapshot, now, {host for host, _, _ in wrong}, forced=forced):
        after = predictions(snapshot, merged(base, change))
        if not isinstance(after, Missing) and common_network(after) == IB and not _wrong(snapshot, after):
            index = next(
                choice.gid_index
                for choice in after[host].hcas
                if (choice.device, choice.port) == (port.device, port.port)
            )
            return Rule(change, why, f"then {_words(port, index)}; {NOT_ASKABLE}: {_SOURCE}"), ()
    known = [member for member in wrong if member[2] is not None]
    return None, (f"NCCL: {why}, and no one index is right for all ports of a node",) if known else ()


def _is_roce(snapshot: Snapshot, now: Mapping[str, Prediction]) -> bool:
    """Every node uses RoCE only, and with IPv4: whoever asks for another family knows the fabric better."""
    for node in snapshot.nodes:
        ports = used_ports(node.facts, now[node.host])
        family = value_of(node.facts, "NCCL_IB_ADDR_FAMILY", {})
        if not ports or family == "AF_INET6" or any(port.link_layer != "Ethernet" for port in ports):
            return False
    return True


def _finds_it_itself(prediction: Prediction) -> bool:
    return versions.parse(prediction.version or versions.NEWEST) >= versions.GID_CHOSEN_SINCE


def _wrong(snapshot: Snapshot, predicted: Mapping[str, Prediction]) -> list[tuple[str, RdmaPort, int | None]]:
    """Each port that would use something else than a RoCE v2 address of IPv4, though it has one."""
    found = []
    for node in snapshot.nodes:
        index_of = {(choice.device, choice.port): choice.gid_index for choice in predicted[node.host].hcas}
        for port in used_ports(node.facts, predicted[node.host]):
            index, right = index_of[port.device, port.port], right_indexes(port)
            if right and index not in right:
                found.append((node.host, port, index))
    return found


def right_indexes(port: RdmaPort) -> tuple[int, ...]:
    """Return the indexes of the port's RoCE v2 addresses of IPv4; none where the table was not read."""
    gids = () if isinstance(port.gids, Missing) else port.gids
    return tuple(gid.index for gid in gids if _is_ipv4(gid) and str(gid.type).startswith("RoCE v2"))


def _is_ipv4(gid: Gid) -> bool:
    try:
        return ipaddress.IPv6Address(gid.gid).ipv4_mapped is not None
    except ValueError:  # facts of another node can hold anything
        return False


def _changes(
    snapshot: Snapshot, now: Mapping[str, Prediction], wrong: Collection[str], *, forced: bool
) -> list[Changes]:
    """Yield the changes to try, the smallest first: unset the variable, one index for all, one for each wrong node."""
    tried: list[Changes] = []
    if forced and all(_finds_it_itself(prediction) for prediction in now.values()):
        return [everywhere(snapshot, {GID_INDEX: removal_of(snapshot, GID_INDEX)})]
    if forced:
        tried.append(everywhere(snapshot, {GID_INDEX: removal_of(snapshot, GID_INDEX)}))
    indexes_by_host = {
        node.host: _common_index(used_ports(node.facts, now[node.host])) for node in snapshot.nodes
    }
    shared = set.intersection(*indexes_by_host.values())
    if shared:
        tried.append(everywhere(snapshot, {GID_INDEX: str(min(shared))}))
    elif all(indexes_by_host.values()):
        tried.append(
            {
                host: {GID_INDEX: str(min(indexes))} if host in wrong else {}
                for host, indexes in indexes_by_host.items()
            }
        )
    return tried


def _common_index(ports: tuple[RdmaPort, ...]) -> set[int]:
    """Return the indexes that are right for all ports of a node, which share one variable."""
    return set.intersection(*(set(right_indexes(port)) for port in ports))


def _words(port: RdmaPort, index: int | None) -> str:
    gids = () if isinstance(port.gids, Missing) else port.gids
    gid = next((entry for entry in gids if entry.index == index), None)
    kind = f"{gid.gid}, {gid.type}" if gid else "which is not set"
    return (
        f"GID {index} of {hca.name_of(port)} ({kind})"
        if index is not None
        else f"no GID of {hca.name_of(port)}"
    )
