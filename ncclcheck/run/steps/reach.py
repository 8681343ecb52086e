"""Reach: the nodes connect to each other, on every address where NCCL could listen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck import timeouts
from ncclcheck.exchange.announcements import peers_faults
from ncclcheck.exchange.messages import SCHEMA, TOOL_VERSION
from ncclcheck.exchange.order_limits import seconds_faults
from ncclcheck.exchange.probe.both_ends import compare_notes, with_nccl_there, without_the_silent
from ncclcheck.exchange.probe.callers import called_by_each, routes_to
from ncclcheck.exchange.probe.reachability import Peer, probe_peers
from ncclcheck.facts.network.interfaces import addresses_of
from ncclcheck.measure.links.schedule import plan_pairs
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.facts import Route
from ncclcheck.model.snapshot import Coverage, Node, Probe, Snapshot
from ncclcheck.nccl.candidates import MAX_CANDIDATES, MOST_OF_GLOO
from ncclcheck.run.session import Session, ask, with_silent
from ncclcheck.run.steps.base import Bounds, Participant, Step
from ncclcheck.timeouts import ANSWER_S, REACH_S

MOST_TARGETS = MAX_CANDIDATES + MOST_OF_GLOO + 1  # ours, and NCCL's own
_MOST_PEERS = 1 << 17


class ReachOrder(Struct, frozen=True, forbid_unknown_fields=True, tag="reach"):
    """Probe these peers: for each ticket, the peers it has to reach."""

    peers: tuple[Peer, ...]
    targets_of: dict[str, tuple[int, ...]]  # ticket -> tickets of its peers
    deadline_s: float


class Probed(Struct, frozen=True, forbid_unknown_fields=True):
    """What this node found as a caller, its routes to its peers, and the addresses whose calls it could not answer.

    `unanswered`: their calls arrived here, but did not hear our answer. `nccl_listens`: NCCL's own listener was still
    there after the probes.
    """

    schema_version: str
    tool_version: str
    probes: Fact[tuple[Probe, ...]]
    routes: tuple[Route, ...]
    unanswered: tuple[str, ...]
    nccl_listens: bool = False


# The coordinator


def _lead(session: Session) -> Snapshot:
    agents, state = session.agents, session.state
    session.context.say(
        f"{len(agents)} of {session.snapshot.job_size} nodes reported; probing the network between them"
    )
    plan = plan_pairs(len(agents))
    peers = tuple(Peer(agent.ticket, agent.host, state.targets.get(agent.ticket, ())) for agent in agents)
    deadline_s = session.deadline.left(REACH_S)
    orders = {
        ticket: ReachOrder(called, {str(ticket): tuple(peer.ticket for peer in called)}, deadline_s)
        for ticket, called in called_by_each(peers, plan.pairs).items()
    }
    answers = ask(session, REACH, orders, agents)

    accepted = answers.accepted
    answers_by_host = {agent.host: accepted[agent.ticket] for agent in agents if agent.ticket in accepted}
    probed = {ticket: answer for ticket, answer in accepted.items() if not isinstance(answer.probes, Missing)}
    state.reached = tuple(agent for agent in agents if agent.ticket in probed)
    silent = replace(answers, accepted=probed).silent(agents, "probes")

    coverage = Coverage(len(plan.pairs), plan.possible, plan.scheme)
    snapshot = replace(
        session.snapshot,
        nodes=tuple(_with_routes(node, answers_by_host.get(node.host)) for node in session.snapshot.nodes),
        probes=_probes(answers_by_host, peers, frozenset(node.host for node in silent)),
        coverage=coverage,
    )
    return with_silent(snapshot, silent)


def _probes(answers: dict[str, Probed], peers: Sequence[Peer], silent: frozenset[str]) -> tuple[Probe, ...]:
    """Return what all callers found, after both ends compared notes."""
    found = [
        replace(probe, from_host=host)
        for host, answer in answers.items()
        if not isinstance(answer.probes, Missing)
        for probe in answer.probes
    ]
    listening = {host for host, answer in answers.items() if answer.nccl_listens}
    addresses = {peer.host: frozenset(target.address for target in peer.targets) for peer in peers}
    unanswered = {host: frozenset(answer.unanswered) for host, answer in answers.items()}
    compared = compare_notes(with_nccl_there(found, listening), addresses, unanswered)
    return without_the_silent(compared, silent)


def _with_routes(node: Node, probed: Probed | None) -> Node:
    if probed is None or isinstance(node.facts.routes, Missing):
        return node
    return replace(node, facts=replace(node.facts, routes=(*node.facts.routes, *probed.routes)))


# A participant


def _follow(participant: Participant, order: ReachOrder) -> Probed:
    local, ticket = participant.node, participant.ticket
    peers = _peers_of(order, ticket)
    own_addresses = addresses_of(local.facts.interfaces)
    host, nonce = participant.context.host, participant.nonce
    probes = probe_peers(host, own_addresses, nonce, ticket, peers, order.deadline_s)
    routes = routes_to(peers, local.facts.interfaces)
    is_listening = local.nccl.listening() is not None
    local.listeners.quiet()  # what comes later measures
    return Probed(SCHEMA, TOOL_VERSION, probes, routes, local.listeners.unanswered(), is_listening)


def _peers_of(order: ReachOrder, ticket: int) -> list[Peer]:
    """Return the peers that this node has to probe."""
    called = frozenset(order.targets_of.get(str(ticket), ()))
    return [peer for peer in order.peers if peer.ticket in called]


def _faults(order: ReachOrder, bounds: Bounds) -> Iterator[str]:
    if not bounds.most_ranks:
        return  # a further rank probes no peers
    yield from seconds_faults(order.deadline_s, timeouts.LONGEST_CALLS_S)
    if len(order.peers) > _MOST_PEERS or len({peer.ticket for peer in order.peers}) != len(order.peers):
        yield "peers that are not one each"
    if any(not key.isascii() or not key.isdigit() or str(int(key[:20])) != key for key in order.targets_of):
        yield "a ticket that is none"
    called = frozenset(order.targets_of.get(str(bounds.ticket), ()))
    if bounds.ticket in called:
        yield "it makes this node call itself"
    peers = [peer for peer in order.peers if peer.ticket in called]
    for peer in peers:
        if len(peer.targets) > MOST_TARGETS:
            yield f"{len(peer.targets)} listeners of ticket {peer.ticket}, {MOST_TARGETS} are accepted"
    yield from peers_faults(peers, bounds)


REACH = Step(
    "reach",
    REACH_S + ANSWER_S,
    applies=lambda session: session.probes_network,
    lead=_lead,
    order=ReachOrder,
    answer=Probed,
    follow=_follow,
    doing="the connection tests",
    faults=_faults,
)
