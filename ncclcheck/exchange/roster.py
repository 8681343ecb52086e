"""Which nodes take part in a run, by node rank and name, and which do not join."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.exchange.gather import Arrivals, processes_of
from ncclcheck.launch.by_hosts import counted
from ncclcheck.launch.launcher_registry import differs_by_rank
from ncclcheck.model.fact import Missing
from ncclcheck.model.launch import Launch
from ncclcheck.model.snapshot import Knock, RankPlace, Silent

_RANGES_NAMED = 8  # of missing local ranks in a name


def placed(
    arrivals: Arrivals, knocks: Mapping[int, Knock], said_nodes: int | None
) -> tuple[Arrivals, tuple[Silent, ...]]:
    """Return the arrivals with the place of every process, and the nodes that never joined.

    Where the launcher tells no places, hosts are counted. `said_nodes`: --nnodes.
    """
    processes = processes_of(arrivals.hellos)
    if not processes:
        return arrivals, ()
    found = counted(processes, {rank: knock.host for rank, knock in knocks.items()}, said_nodes)
    hellos = {
        ticket: replace(hello, launch=found.launches.get(ticket, hello.launch))
        for ticket, hello in arrivals.hellos.items()
    }
    no_word = Missing("absent", "no word from it")
    silent = tuple(
        Silent(
            node.host,
            node_rank,
            "join",
            arrivals.waited_s,
            next((knocks[rank] for rank in node.ranks if rank in knocks), no_word),
        )
        for node_rank, node in found.absent.items()
    )
    return replace(arrivals, hellos=hellos), silent


class Member(Struct, frozen=True):
    """A process that joined: its ticket, its launch, and its node's name in the report."""

    ticket: int
    launch: Launch
    host: str


def roster(arrivals: Arrivals) -> tuple[Member, ...]:
    """Return all members that joined, by node rank. A host name that several nodes have gets the node rank added."""
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
    """Return the first member of each place (host, local rank): a second one is a clash of claims."""
    first: dict[tuple[str, int], Member] = {}
    for member in members:
        first.setdefault((member.host, member.launch.local_rank), member)
    return tuple(first.values())


def rank_place(member: Member, environment: dict[str, str], agent: dict[str, str]) -> RankPlace:
    """Return where a further rank is, and how its environment differs from that of its node's agent."""
    differs = {
        name: environment.get(name)
        for name in sorted(environment.keys() | agent.keys())
        if environment.get(name) != agent.get(name) and not differs_by_rank(name)
    }
    launch = member.launch
    return RankPlace(
        launch.rank, member.host, launch.node_rank, launch.local_rank, launch.world_size, differs
    )


def silent_nodes(launch: Launch, arrivals: Arrivals, knocks: Mapping[int, Knock]) -> tuple[Silent, ...]:
    """Return the nodes that never joined; none where as many joined as were expected, under clashing ranks."""
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
    """Return the further ranks that never joined, of nodes that did: each agent knows how many were started there.

    The ranks of a node are one entry, however many there are: an agent may say thousands.
    """
    there = {(hello.launch.node_rank, hello.launch.local_rank) for hello in arrivals.hellos.values()}
    found = []
    for hello in arrivals.hellos.values():
        node_rank, started = hello.launch.node_rank, range(1, hello.launch.local_world_size)
        if not hello.launch.is_agent:
            continue
        if missing := [local for local in started if (node_rank, local) not in there]:
            host = f"{hello.host}-{_local_ranks(missing)}"
            found.append(Silent(host, node_rank, "join", arrivals.waited_s))
    return tuple(found)


def _local_ranks(ranks: Sequence[int]) -> str:
    """Return the ranks as a part of a name: local-rank-1, local-ranks-1-7, local-ranks-1+5 (a few, then "...")."""
    ranges: list[list[int]] = []
    for rank in ranks:
        if ranges and ranges[-1][1] == rank - 1:
            ranges[-1][1] = rank
        else:
            ranges.append([rank, rank])
    parts = [str(low) if low == high else f"{low}-{high}" for low, high in ranges[:_RANGES_NAMED]]
    more = ["..."] if len(ranges) > _RANGES_NAMED else []
    return f"local-rank{'s' if len(ranks) > 1 else ''}-{'+'.join((*parts, *more))}"


def _silent_name(rank: int, launch: Launch, knocks: Mapping[int, Knock]) -> str:
    """Return what to call a node that is not there: its own name, the launcher's, or its rank."""
    if rank in knocks:
        return knocks[rank].host
    return launch.hosts[rank] if len(launch.hosts) == launch.nnodes else f"node-rank-{rank}"
