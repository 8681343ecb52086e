"""Which settings would make NCCL and Gloo use a network that all nodes reach each other on."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from ncclcheck.advice.gloo import GlooAdvice, advise_gloo
from ncclcheck.advice.networks import Network, find_networks
from ncclcheck.advice.reach import Reach, read_reach, some_of
from ncclcheck.advice.setting import smallest_change
from ncclcheck.model.fact import Missing
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.nccl.prediction import Prediction, node_choice, predict


class Proposal(Struct, frozen=True):
    """A change of NCCL's environment that is still to be confirmed by asking the library on every node with it.

    `places` is the (interface, address) that our model says each host then uses, `why` what is wrong now, `evidence`
    what the probes showed there.
    """

    env_by_host: dict[str, dict[str, str | None]]
    places: dict[str, tuple[str, str]]
    why: str
    evidence: str


class Decision(Struct, frozen=True):
    """What to do about NCCL (at most one proposal) and Gloo, and the sentences that say why nothing is done."""

    proposals: tuple[Proposal, ...]
    gloo: GlooAdvice
    notes: tuple[str, ...]
    reach_evidence: str = ""


def propose(snapshot: Snapshot) -> tuple[Proposal, ...]:
    """The changes of NCCL's environment that are to be confirmed by asking. Gloo's need no asking: see `decide`."""
    return decide(snapshot).proposals


def decide(snapshot: Snapshot) -> Decision:
    """What would be advised, if the library confirms it. Empty, with a note, where nothing can be shown to help."""
    no_gloo = GlooAdvice({}, "", None, ())
    if snapshot.job_size <= 1:
        return Decision((), no_gloo, ("one node: there is no network between nodes to advise on",))
    reach = read_reach(snapshot)
    if isinstance(reach, Missing):
        note = f"no interface is advised, since reach between all nodes was not shown: {reach.detail or reach.missing}"
        return Decision((), no_gloo, (note,))
    networks = find_networks(snapshot, reach)
    usable = tuple(network for network in networks if network.failure is None)
    proposals, notes, places = _decide_nccl(snapshot, reach, networks, usable)
    gloo = advise_gloo(snapshot, reach, usable, places)
    evidence = reach.evidence(gloo.network.places) if gloo.network else ""
    return Decision(proposals, gloo, (*notes, *gloo.notes), evidence)


def _decide_nccl(
    snapshot: Snapshot, reach: Reach, networks: Sequence[Network], usable: Sequence[Network]
) -> tuple[tuple[Proposal, ...], tuple[str, ...], dict[str, tuple[str, str]] | None]:
    """Proposals, notes, and the places NCCL uses in the end, if that is known."""
    choices: dict[str, Prediction] = {}
    for node in snapshot.nodes:
        choice = node_choice(node.facts)
        if isinstance(choice, Missing):
            return (), (f"NCCL: its choice on {node.host} is not known ({choice}); nothing is advised",), None
        choices[node.host] = choice
    fault = _fault(snapshot, reach, choices)
    current = {host: (one.interface or "", one.address or "") for host, one in choices.items()}
    if not fault:
        names = "/".join(dict.fromkeys(interface for interface, _ in current.values()))
        note = f"NCCL: its own choice, {names}, is reachable between all nodes: nothing to set"
        return (), (note,), current
    if not usable:
        return (), (f"NCCL: {fault}. {_why_none(networks)}",), None
    for node in snapshot.nodes:
        if isinstance(foreseen := predict(node.facts), Missing):
            note = f"NCCL: {fault}; what a setting would do on {node.host} is not known ({foreseen})"
            return (), (f"{note}; nothing is advised",), None
    change = smallest_change(snapshot, reach, usable)
    if change is None:
        note = (
            f"NCCL: {fault}. {usable[0].name} is reachable, but no variable makes NCCL use it on every node"
        )
        return (), (note + ": see its config files and NCCL_COMM_ID",), None
    env_by_host, places = change
    return (Proposal(env_by_host, places, fault, reach.evidence(places)),), (), places


def _fault(snapshot: Snapshot, reach: Reach, choices: dict[str, Prediction]) -> str:
    """What is wrong with NCCL's present choice; empty where nothing is."""
    failing = [host for host, one in choices.items() if one.interface is None]
    if failing:
        return f"NCCL finds no interface on {some_of(failing)} ({choices[failing[0]].reason})"
    loopbacks = {
        (node.host, interface.name)
        for node, interfaces in snapshot.known("interfaces")
        for interface in interfaces
        if interface.kind == "loopback" or "loopback" in interface.flags
    }
    bound = [host for host, one in choices.items() if (host, one.interface) in loopbacks]
    if bound:
        one = choices[bound[0]]
        return f"NCCL would bind {one.interface} ({one.address}) on {some_of(bound)}, which no other node can reach"
    failure = reach.failure({host: (one.interface or "", one.address or "") for host, one in choices.items()})
    return f"NCCL's choice is not reachable: {failure.text}" if failure else ""


def _why_none(networks: Sequence[Network]) -> str:
    """What was tried: each candidate network with the first pair that failed on it."""
    if not networks:
        return "No interface is up on every node under a common name or in a common subnet, so nothing is advised"
    tried = some_of((f"{network.name} ({network.failure})" for network in networks), limit=3)
    return f"No interface is mutually reachable on all nodes, so nothing is advised. Tried: {tried}"
