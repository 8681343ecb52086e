"""Left-over settings that keep NCCL from the network it would use by itself, or that no network fits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations

from ncclcheck.advice.rule import NOT_ASKABLE, Changes, Rule, merged, predictions, used_ports, value_of
from ncclcheck.advice.setting import everywhere, removal_of
from ncclcheck.model.fact import Missing
from ncclcheck.model.formats.prose import listed
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.nccl.network import IB, SOCKET
from ncclcheck.nccl.prediction import Prediction
from ncclcheck.nccl.transport import hca_words

_HIDING = ("NCCL_IB_DISABLE", "NCCL_NET", "NCCL_IB_HCA")
_SOURCE = "NCCL src/transport/net_ib.cc (ncclIbInit) and src/net.cc, since 2.27 src/plugin/net.cc"


def advise_network(
    snapshot: Snapshot, base: Changes, now: Mapping[str, Prediction]
) -> tuple[Rule | None, tuple[str, ...]]:
    """Return the fewest variables to unset so that every node uses RDMA, or at least any network.

    On top of `base`, under which NCCL does as in `now`.

    None where nothing is in the way, or taking it away would not do; a note where that is not known.
    """
    present = [name for name in _HIDING if _is_set(snapshot, name, base)]
    if not present:
        return None, ()
    common = common_network(now)
    if common not in {None, SOCKET}:
        return None, ()
    unknown = [
        host for host, prediction in now.items() if prediction.network is None and not prediction.fails
    ]
    if unknown:
        reason = now[unknown[0]].network_reason
        return None, (f"NCCL: its network on {listed(unknown, 4)} is {reason or 'not known'}",)
    fallback = None
    for change in _removals(snapshot, present):
        after = predictions(snapshot, merged(base, change))
        found = None if isinstance(after, Missing) else common_network(after)
        if isinstance(after, Missing) or found is None:
            continue
        if found != SOCKET and _can_meet(snapshot, after):
            return _rule(change, now, after), ()
        if found == SOCKET and common is None:
            fallback = fallback or _rule(change, now, after)
    return fallback, ()


def common_network(predicted: Mapping[str, Prediction]) -> str | None:
    """Return the network that all nodes use; None where they differ, one fails, or one is not known."""
    found = {None if prediction.fails else prediction.network for prediction in predicted.values()}
    return found.pop() if len(found) == 1 else None


def _is_set(snapshot: Snapshot, name: str, base: Changes) -> bool:
    return any(value_of(node.facts, name, base.get(node.host, {})) is not None for node in snapshot.nodes)


def _removals(snapshot: Snapshot, names: list[str]) -> Iterator[Changes]:
    """Each way to take away some of them, the smallest first. NCCL_NET in a config file can only be overridden."""
    for size in range(1, len(names) + 1):
        for chosen in combinations(names, size):
            change = {name: removal_of(snapshot, name) for name in chosen}
            yield everywhere(snapshot, change)
            if "NCCL_NET" in change:
                yield everywhere(snapshot, {**change, "NCCL_NET": IB})


def _can_meet(snapshot: Snapshot, after: Mapping[str, Prediction]) -> bool:
    """Return False if the ports of the nodes have no link layer in common: InfiniBand and Ethernet do not connect."""
    layers = [
        {port.link_layer for port in used_ports(node.facts, after[node.host])} for node in snapshot.nodes
    ]
    return not all(layers) or bool(set.intersection(*layers))


def _rule(change: Changes, now: Mapping[str, Prediction], after: Mapping[str, Prediction]) -> Rule:
    worse = [
        host
        for host, prediction in now.items()
        if prediction.fails or prediction.network != after[host].network
    ]
    first = now[worse[0]]
    state = "stops" if first.fails else f"uses {first.network}"
    why = f"NCCL {state} on {listed(worse, 4)}: {first.network_reason}"
    then = next(iter(after.values()))
    ports = f" with {hca_words(then.hcas)}" if then.hcas else ""
    evidence = f"then every node uses {then.network}, {next(iter(after))}{ports}; {NOT_ASKABLE}: {_SOURCE}"
    return Rule(change, why, evidence)
