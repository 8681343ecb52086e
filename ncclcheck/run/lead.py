"""Node 0's part: serve the store, gather everybody, order the steps, and put together what was seen."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.advice.interface import propose
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.gather import Arrivals, gather_answers
from ncclcheck.exchange.messages import (
    FACTS_LIMIT_BYTES,
    SCHEMA,
    Bench,
    Compare,
    Confirm,
    Confirmed,
    Finish,
    Hello,
    Measure,
    Probed,
    RankReport,
    Reach,
    Recount,
    Report,
    Resolve,
    Share,
    Step,
    read_message,
)
from ncclcheck.exchange.probe.reachability import Peer, Target
from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.base import Store
from ncclcheck.launch.launcher_registry import differs_by_rank
from ncclcheck.measure.links.schedule import plan_pairs
from ncclcheck.model.codec import encode
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.facts import NcclAnswer, Route
from ncclcheck.model.launch import Launch
from ncclcheck.model.snapshot import (
    Confirmation,
    Coverage,
    Knock,
    Node,
    Probe,
    RankPlace,
    Refused,
    Silent,
    Snapshot,
)
from ncclcheck.run.context import TOOL_VERSION

FACTS_S = 15.0
REACH_S = 12.0
CONFIRM_S = 15.0  # on a busy node, starting the process that asks takes most of it
_LEAST_CONFIRM_S = 1.0
_ANSWER_S = 2.0  # for the answer to arrive, beyond the time that the asking has
BYE_S = 2.0


class Member(Struct, frozen=True):
    """A process that came: its ticket, its launch, and its node's name in the report."""

    ticket: int
    launch: Launch
    host: str


class Orders:
    """Numbers the steps. The state is that number: every agent reads the steps in this order."""

    def __init__(self, store: Store) -> None:
        self._store, self._next = store, 0

    def give(
        self, order: Reach | Resolve | Measure | Share | Confirm | Bench | Compare | Recount | Finish
    ) -> Callable[[int], str]:
        """The order is out; the key under which a ticket's answer to it will stand."""
        number, self._next = self._next, self._next + 1
        self._store.set_document(keys.step(number), encode(Step(SCHEMA, TOOL_VERSION, order)))
        return lambda ticket: keys.answer(number, ticket)


def roster(arrivals: Arrivals) -> tuple[Member, ...]:
    """Everyone who came, by node rank. A host name that several nodes have gets the node rank added."""
    hellos = arrivals.hellos
    ranks = {(hello.host, hello.launch.node_rank) for hello in hellos.values() if hello.launch.is_agent}
    agents = Counter(host for host, _ in ranks)
    members = [
        Member(
            ticket,
            hello.launch,
            hello.host if agents[hello.host] <= 1 else f"{hello.host}#{hello.launch.node_rank}",
        )
        for ticket, hello in hellos.items()
    ]
    return tuple(sorted(members, key=lambda one: (one.launch.node_rank, one.launch.local_rank, one.ticket)))


def one_per_place(members: tuple[Member, ...]) -> tuple[Member, ...]:
    """Without those that came second to a place (host, node rank, local rank): they are a clash of claims."""
    first: dict[tuple[str, int], Member] = {}
    for member in members:
        first.setdefault((member.host, member.launch.local_rank), member)
    return tuple(first.values())


def silent_nodes(launch: Launch, arrivals: Arrivals, knocks: dict[int, Knock]) -> tuple[Silent, ...]:
    """The nodes that never came. Where as many came as were expected, under clashing ranks, none is called silent."""
    agents = [hello for hello in arrivals.hellos.values() if hello.launch.is_agent]
    missing = sorted(set(range(launch.nnodes)) - {hello.launch.node_rank for hello in agents})
    if len(agents) + len(arrivals.refused) >= launch.nnodes:
        return ()
    return tuple(
        Silent(
            silent_name(rank, launch, knocks),
            rank,
            "join",
            arrivals.waited_s,
            knocks.get(rank, Missing("absent", "no word from it")),
        )
        for rank in missing
    )


def silent_ranks(arrivals: Arrivals) -> tuple[Silent, ...]:
    """The further ranks that never came, of nodes that did: each agent knows how many its launcher started there."""
    there = {(hello.launch.node_rank, hello.launch.local_rank) for hello in arrivals.hellos.values()}
    return tuple(
        Silent(f"{hello.host}-local-rank-{local}", hello.launch.node_rank, "join", arrivals.waited_s)
        for hello in arrivals.hellos.values()
        if hello.launch.is_agent
        for local in range(1, hello.launch.local_world_size)
        if (hello.launch.node_rank, local) not in there
    )


def silent_name(rank: int, launch: Launch, knocks: dict[int, Knock]) -> str:
    """What to call a node that is not there: as it calls itself, as the launcher lists it, or by its rank."""
    if rank in knocks:
        return knocks[rank].host
    return launch.hosts[rank] if len(launch.hosts) == launch.nnodes else f"node-rank-{rank}"


def read_members(
    store: Store, members: tuple[Member, ...], arrivals: Arrivals, deadline: Deadline
) -> tuple[Snapshot, dict[int, tuple[Target, ...]]]:
    """The snapshot of what everybody says, and each node's listeners. Messages that are no facts are refused."""
    say_late = deadline.within(FACTS_S)
    asked = one_per_place(members)
    found = gather_answers(store, [one.ticket for one in asked], keys.facts, say_late)
    nodes, targets, ranks, silent = [], {}, [], []
    refused = [Refused(f"ticket-{ticket}", "hello", reason) for ticket, reason in arrivals.refused.items()]
    agent_environment: dict[str, dict[str, str]] = {}
    for member in asked:
        data = found.get(member.ticket)
        try:
            if data is None:
                if member.launch.is_agent:
                    silent.append(Silent(member.host, member.launch.node_rank, "facts", FACTS_S))
            elif member.launch.is_agent:
                message = read_message(data, Report, FACTS_LIMIT_BYTES)
                nodes.append(Node(member.host, member.launch.node_rank, message.facts))
                targets[member.ticket] = message.targets
                if not isinstance(message.facts.environment, Missing):
                    agent_environment[member.host] = message.facts.environment
            else:
                environment = read_message(data, RankReport, FACTS_LIMIT_BYTES).environment
                ranks.append(_place(member, environment, agent_environment.get(member.host)))
        except DecodeError as error:
            refused.append(Refused(member.host, "facts", str(error)))
            if member.launch.is_agent:
                silent.append(Silent(member.host, member.launch.node_rank, "facts", 0.0))
    snapshot = Snapshot(
        nodes=tuple(nodes),
        ranks=tuple(ranks),
        claims=tuple(member.launch for member in members),
        claim_hosts=tuple(member.host for member in members),
        silent=tuple(silent),
        refused=tuple(refused),
    )
    return snapshot, targets


def with_late_claims(snapshot: Snapshot, late: Sequence[Hello]) -> Snapshot:
    """The snapshot with the claims of those who came late, to a place that somebody else has: the job has one too many.

    Who comes late to his own place was silent when it counted, and is told as that.
    """
    taken = {(claim.node_rank, claim.local_rank) for claim in snapshot.claims}
    clashing = [hello for hello in late if (hello.launch.node_rank, hello.launch.local_rank) in taken]
    return replace(
        snapshot,
        claims=(*snapshot.claims, *(hello.launch for hello in clashing)),
        claim_hosts=(*snapshot.claim_hosts, *(hello.host for hello in clashing)),
    )


def _place(member: Member, environment: dict[str, str], agent: dict[str, str] | None) -> RankPlace:
    agent = agent or {}
    differs = {
        name: environment.get(name)
        for name in sorted(environment.keys() | agent.keys())
        if environment.get(name) != agent.get(name) and not differs_by_rank(name)
    }
    launch = member.launch
    return RankPlace(
        launch.rank, member.host, launch.node_rank, launch.local_rank, launch.world_size, differs
    )


class Reached(Struct, frozen=True):
    """What came of the probes: outcomes, coverage, the agents that did not answer, and each host's routes."""

    probes: tuple[Probe, ...]
    coverage: Coverage
    silent: tuple[Silent, ...]
    routes: dict[str, tuple[Route, ...]]

    def added_to(self, snapshot: Snapshot) -> Snapshot:
        """The snapshot with all of it."""
        nodes = tuple(
            replace(
                node, facts=replace(node.facts, routes=(*node.facts.routes, *self.routes.get(node.host, ())))
            )
            if not isinstance(node.facts.routes, Missing)
            else node
            for node in snapshot.nodes
        )
        return replace(
            snapshot,
            nodes=nodes,
            probes=self.probes,
            coverage=self.coverage,
            silent=snapshot.silent + self.silent,
        )


def reach(
    orders: Orders,
    store: Store,
    agents: tuple[Member, ...],
    targets: dict[int, tuple[Target, ...]],
    deadline: Deadline,
) -> Reached:
    """Every planned pair probed in both directions, as far as the agents answered."""
    started = time.monotonic()
    plan = plan_pairs(len(agents))
    peers = tuple(Peer(one.ticket, one.host, targets.get(one.ticket, ())) for one in agents)
    wanted: dict[str, list[int]] = {str(one.ticket): [] for one in agents}
    for caller, called in plan.pairs:
        wanted[str(agents[caller].ticket)].append(agents[called].ticket)
    seconds = deadline.left(REACH_S)
    order = Reach(peers, {ticket: tuple(others) for ticket, others in wanted.items()}, seconds)
    key = orders.give(order)
    found = gather_answers(store, [one.ticket for one in agents], key, deadline.within(seconds + 2.0))
    probes: list[Probe] = []
    late: list[Member] = []
    unanswered: dict[str, frozenset[str]] = {}
    routes: dict[str, tuple[Route, ...]] = {}
    listening: set[str] = set()
    for one in agents:
        try:
            answer = read_message(found[one.ticket], Probed, FACTS_LIMIT_BYTES)
        except (KeyError, DecodeError):
            late.append(one)
            continue
        unanswered[one.host] = frozenset(answer.unanswered)
        routes[one.host] = answer.routes
        listening |= {one.host} if answer.nccl_listens else set()
        if isinstance(answer.probes, Missing):
            late.append(one)
        else:
            probes += [replace(probe, from_host=one.host) for probe in answer.probes]
    addresses = {peer.host: frozenset(target.address for target in peer.targets) for peer in peers}
    waited_s = round(time.monotonic() - started, 1)
    silent = tuple(Silent(one.host, one.launch.node_rank, "probes", waited_s) for one in late)
    probes = with_nccl_there(probes, listening)
    seen = without_the_silent(compared(probes, addresses, unanswered), frozenset(one.host for one in late))
    return Reached(seen, Coverage(len(plan.pairs), plan.possible, plan.scheme), silent, routes)


def without_the_silent(probes: tuple[Probe, ...], silent: frozenset[str]) -> tuple[Probe, ...]:
    """The probes, where what others met at a node that gave no answer itself says nothing about the network.

    A process that has ended refuses like a firewall, and a stopped one accepts and says nothing, like a stranger.
    """
    return tuple(
        replace(
            probe,
            outcome="error",
            detail=f"{probe.outcome} ({probe.detail}), and {probe.to_host} itself did not answer any more",
        )
        if probe.to_host in silent and probe.outcome != "ok"
        else probe
        for probe in probes
    )


def with_nccl_there(probes: Sequence[Probe], listening: Collection[str]) -> list[Probe]:
    """The probes, where a refusal at NCCL's own listener counts only if the node says that it was still there."""
    return [
        replace(
            probe, outcome="error", detail=f"{probe.detail}; and {probe.to_host} does not have it any more"
        )
        if probe.listener == "nccl" and probe.outcome == "refused" and probe.to_host not in listening
        else probe
        for probe in probes
    ]


def compared(
    probes: list[Probe], addresses: dict[str, frozenset[str]], unanswered: dict[str, frozenset[str]]
) -> tuple[Probe, ...]:
    """The probes after both ends compared notes: a call without answer that did arrive is "answer-lost"."""
    nowhere: frozenset[str] = frozenset()

    def one(probe: Probe) -> Probe:
        arrived = addresses.get(probe.from_host, nowhere) & unanswered.get(probe.to_host, nowhere)
        if probe.outcome != "filtered" or not arrived:
            return probe
        detail = f"{probe.detail}; the call arrived at {probe.to_host}, whose answers do not come back"
        return replace(probe, outcome="answer-lost", detail=detail)

    return tuple(one(probe) for probe in probes)


def confirm_advice(
    orders: Orders, store: Store, agents: tuple[Member, ...], snapshot: Snapshot, deadline: Deadline
) -> Snapshot:
    """The snapshot with what the real library of every node chooses under each proposed environment.

    A node that says nothing at all is silent from then on.
    """
    proposals = propose(snapshot)
    seconds = deadline.left(CONFIRM_S + _ANSWER_S) - _ANSWER_S
    if not proposals or seconds < _LEAST_CONFIRM_S:
        return snapshot
    environments = {
        str(one.ticket): tuple(proposal.env_by_host.get(one.host, {}) for proposal in proposals)
        for one in agents
    }
    started = time.monotonic()
    key = orders.give(Confirm(environments, seconds))
    found = gather_answers(store, [one.ticket for one in agents], key, deadline.within(seconds + _ANSWER_S))
    waited_s = round(time.monotonic() - started, 1)
    confirmations, silent = [], []
    for one in agents:
        asked = environments[str(one.ticket)]
        answers: tuple[Fact[NcclAnswer], ...] = ()
        try:
            answers = read_message(found[one.ticket], Confirmed, FACTS_LIMIT_BYTES).answers
        except (KeyError, DecodeError):
            silent.append(Silent(one.host, one.launch.node_rank, "confirm", waited_s))
        if len(answers) != len(asked):
            answers = (Missing("timeout", f"no answer came in {waited_s:.0f} s"),) * len(asked)
        confirmations += [
            Confirmation(one.host, settings, answer) for settings, answer in zip(asked, answers, strict=True)
        ]
    return replace(snapshot, confirmations=tuple(confirmations), silent=(*snapshot.silent, *silent))


def finish(orders: Orders, store: Store, others: Collection[int], order: Finish, report: bytes) -> None:
    """Everybody can read the verdict and the report, and those who are there have done so."""
    store.set_document(keys.REPORT, report)
    orders.give(order)
    gather_answers(store, others, keys.bye, Deadline(BYE_S))
