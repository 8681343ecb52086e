"""What would be advised to NCCL and Gloo, before the libraries are asked whether it is so."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from msgspec import Struct

from ncclcheck.advice.gloo import GlooAdvice, advise_gloo
from ncclcheck.advice.leftover_settings import advise_network, common_network
from ncclcheck.advice.networks import Network, find_networks
from ncclcheck.advice.rdma.gids import advise_gids
from ncclcheck.advice.rdma.ports import advise_ports
from ncclcheck.advice.reach import Reach, read_reach
from ncclcheck.advice.rule import Changes, Rule, merged, predictions
from ncclcheck.advice.sockets import Proposal, fault_of, keep_for_bootstrap, repair, speed_up, stray_devices
from ncclcheck.advice.speed import best_first
from ncclcheck.advice.threads import advise_threads
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.nccl.network import SOCKET
from ncclcheck.nccl.prediction import Prediction, node_choice

_Advise: TypeAlias = Callable[
    [Snapshot, Changes, Mapping[str, Prediction]], tuple[Rule | None, tuple[str, ...]]
]
_ON_RDMA: tuple[_Advise, ...] = (advise_network, advise_ports, advise_gids)


class Decision(Struct, frozen=True):
    """What to do about NCCL's sockets (at most one proposal), its network (by rules) and Gloo, and why not more."""

    proposals: tuple[Proposal, ...]
    gloo: GlooAdvice
    notes: tuple[str, ...]
    reach_evidence: str = ""
    rules: tuple[Rule, ...] = ()


class _Nccl(Struct, frozen=True):
    """The part of a decision that is about NCCL."""

    proposals: tuple[Proposal, ...] = ()
    rules: tuple[Rule, ...] = ()
    notes: tuple[str, ...] = ()
    places: dict[str, tuple[str, str]] | None = None


def propose(snapshot: Snapshot) -> tuple[Proposal, ...]:
    """Return the changes that the NCCL library has to confirm. Gloo and NCCL's network: see `decide`."""
    return decide(snapshot).proposals


def decide(snapshot: Snapshot) -> Decision:
    """Return the advice, if the library confirms it. Empty, with a note, where no change is shown to help."""
    no_gloo = GlooAdvice({}, "", None, ())
    if snapshot.job_size <= 1:
        return Decision((), no_gloo, ("one node: there is no network between nodes to advise on",))
    reach = read_reach(snapshot)
    if isinstance(reach, Missing):
        note = f"no interface is advised, since reach between all nodes was not shown: {reach.detail or reach.missing}"
        return Decision((), no_gloo, (note,))
    networks = find_networks(snapshot, reach)
    usable = best_first([network for network in networks if network.failure is None])
    nccl = _decide_nccl(snapshot, reach, networks, usable)
    gloo = advise_gloo(snapshot, reach, usable, nccl.places)
    evidence = reach.evidence(gloo.network.places) if gloo.network else ""
    return Decision(nccl.proposals, gloo, (*nccl.notes, *gloo.notes), evidence, nccl.rules)


def _decide_nccl(
    snapshot: Snapshot, reach: Reach, networks: tuple[Network, ...], usable: tuple[Network, ...]
) -> _Nccl:
    choices = _choices(snapshot)
    if isinstance(choices, Missing):
        return _Nccl(notes=(f"NCCL: {choices.detail}; nothing is advised",))
    places = {host: (choice.interface or "", choice.address or "") for host, choice in choices.items()}
    fault = fault_of(snapshot, reach, choices)
    sockets: Proposal | str = repair(snapshot, reach, networks, usable, fault) if fault else ""
    under = _rules(snapshot, sockets.env_by_host if isinstance(sockets, Proposal) else {})
    stray: tuple[str, ...] = ()
    if not fault:
        if under.network in {None, SOCKET}:
            sockets = speed_up(snapshot, reach, usable, places)
            stray = stray_devices(networks, choices) if under.network and isinstance(sockets, str) else ()
        else:
            sockets = keep_for_bootstrap(snapshot, reach, usable, places, under.network or "")
    if isinstance(sockets, Proposal):
        base = merged(under.base, sockets.env_by_host)
        threads, more = advise_threads(snapshot, base, under.network, sockets.places)
        return _Nccl(
            (sockets,), (*under.rules, *_rule_or_none(threads)), (*under.notes, *more), sockets.places
        )
    if fault:
        return _Nccl((), under.rules, (sockets, *under.notes))
    threads, more = advise_threads(snapshot, under.base, under.network, places)
    return _Nccl((), (*under.rules, *_rule_or_none(threads)), (sockets, *stray, *under.notes, *more), places)


def _choices(snapshot: Snapshot) -> Fact[dict[str, Prediction]]:
    choices: dict[str, Prediction] = {}
    for node in snapshot.nodes:
        choice = node_choice(node.facts)
        if isinstance(choice, Missing):
            return Missing(choice.missing, f"its choice on {node.host} is not known ({choice})")
        choices[node.host] = choice
    return choices


class _Rules(Struct, frozen=True):
    """The rules that apply, `base` with all of them, and the network that NCCL then uses on every node, if one."""

    rules: tuple[Rule, ...]
    notes: tuple[str, ...]
    base: Changes
    network: str | None


def _rules(snapshot: Snapshot, base: Changes) -> _Rules:
    """Network, ports and GIDs, each on top of those before."""
    rules: list[Rule] = []
    notes: list[str] = []
    now = predictions(snapshot, base)
    for advise in _ON_RDMA:
        if isinstance(now, Missing):
            break
        rule, more = advise(snapshot, base, now)
        notes += more
        if rule is not None:
            rules.append(rule)
            base = merged(base, rule.env_by_host)
            now = predictions(snapshot, base)
    network = None if isinstance(now, Missing) else common_network(now)
    return _Rules(tuple(rules), tuple(notes), base, network)


def _rule_or_none(rule: Rule | None) -> tuple[Rule, ...]:
    return () if rule is None else (rule,)
