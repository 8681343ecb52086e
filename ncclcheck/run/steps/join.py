"""Join: every process says hello, and the coordinator knows who takes part and who does not come."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from msgspec.structs import replace

from ncclcheck.exchange.gather import Arrivals, gather_hellos
from ncclcheck.exchange.messages import SCHEMA, TOOL_VERSION, Hello
from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.base import Store
from ncclcheck.model.codec import encode
from ncclcheck.model.fact import Missing
from ncclcheck.model.launch import NOT_RANKED, Launch
from ncclcheck.model.snapshot import Knock, Silent, Snapshot
from ncclcheck.run.context import Context
from ncclcheck.run.session import Session
from ncclcheck.run.state import Member
from ncclcheck.run.steps.base import Participant, Step
from ncclcheck.timeouts import JOIN_TIMEOUT_S

# A participant


def arrive(context: Context, store: Store, nonce: bytes) -> Participant | Missing:
    """Say hello, and return this process's part in the run: with its ticket, and with a rank where it had none."""
    ticket = store.add(keys.TICKETS, 1)
    if isinstance(ticket, Missing):
        return ticket
    launch = _ranked(context.launch, store)
    if isinstance(launch, Missing):
        return launch
    hello = Hello(SCHEMA, TOOL_VERSION, context.host, launch)
    failed = store.set_document(keys.hello(ticket), encode(hello))
    return failed or Participant(replace(context, launch=launch), store, ticket, nonce.hex())


def _ranked(launch: Launch, store: Store) -> Launch | Missing:
    """Return the launch with the next node rank, where only arrival gives one; more nodes than the job has clash."""
    if launch.node_rank != NOT_RANKED:
        return launch
    drawn = store.add(keys.RANKS, 1)
    if isinstance(drawn, Missing):
        return drawn
    rank = min(drawn, launch.nnodes - 1)
    return replace(launch, node_rank=rank, rank=rank)


# The coordinator


def _lead(session: Session) -> Snapshot:
    launch, joining, state = session.context.launch, session.joining, session.state

    def given_up() -> Collection[int]:
        return {*joining.knocks(), *joining.given_up()}

    deadline = session.deadline.within(joining.timeout_s)
    state.arrivals = gather_hellos(session.store, launch, given_up, deadline, session.context.say)
    if session.store.lost is not None and joining.when_lost is not None:
        state.is_over = True
        return joining.when_lost(session.store.lost)
    silent = silent_nodes(launch, state.arrivals, joining.knocks()) + silent_ranks(state.arrivals)
    names = joining.names()
    named = (replace(node, host=names.get(node.node_rank, node.host)) for node in silent)
    return replace(session.snapshot, silent=tuple(named))


def roster(arrivals: Arrivals) -> tuple[Member, ...]:
    """Return everyone who came, by node rank. A host name that several nodes have gets the node rank added."""
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
    return tuple(
        sorted(members, key=lambda member: (member.launch.node_rank, member.launch.local_rank, member.ticket))
    )


def one_per_place(members: tuple[Member, ...]) -> tuple[Member, ...]:
    """Return the members without those that came second to a place (host, local rank): they are a clash of claims."""
    first: dict[tuple[str, int], Member] = {}
    for member in members:
        first.setdefault((member.host, member.launch.local_rank), member)
    return tuple(first.values())


def silent_nodes(launch: Launch, arrivals: Arrivals, knocks: Mapping[int, Knock]) -> tuple[Silent, ...]:
    """Return the nodes that never came; none where as many came as were expected, under clashing ranks."""
    agents = [hello for hello in arrivals.hellos.values() if hello.launch.is_agent]
    missing = sorted(set(range(launch.nnodes)) - {hello.launch.node_rank for hello in agents})
    if len(agents) + len(arrivals.refused) >= launch.nnodes:
        return ()
    return tuple(
        Silent(
            _silent_name(rank, launch, knocks),
            rank,
            "join",
            arrivals.waited_s,
            knocks.get(rank, Missing("absent", "no word from it")),
        )
        for rank in missing
    )


def silent_ranks(arrivals: Arrivals) -> tuple[Silent, ...]:
    """Return the further ranks that never came, of nodes that did: each agent knows how many were started there."""
    there = {(hello.launch.node_rank, hello.launch.local_rank) for hello in arrivals.hellos.values()}
    return tuple(
        Silent(f"{hello.host}-local-rank-{local}", hello.launch.node_rank, "join", arrivals.waited_s)
        for hello in arrivals.hellos.values()
        if hello.launch.is_agent
        for local in range(1, hello.launch.local_world_size)
        if (hello.launch.node_rank, local) not in there
    )


def _silent_name(rank: int, launch: Launch, knocks: Mapping[int, Knock]) -> str:
    """Return what to call a node that is not there: its own name, the launcher's, or its rank."""
    if rank in knocks:
        return knocks[rank].host
    return launch.hosts[rank] if len(launch.hosts) == launch.nnodes else f"node-rank-{rank}"


JOIN: Step[None, None] = Step("join", JOIN_TIMEOUT_S, applies=lambda _: True, lead=_lead)
