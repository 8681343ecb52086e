"""Nodes counted by their processes, where the launcher tells a process its rank and not its node (mpirun, PMI, RANK).

World size divided by local size is no number of nodes: with 3, 1 and 2 slots each node would compute another one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import NodeFacts
from ncclcheck.model.launch import Contradiction, Launch, Told


class LaunchedProcess(Struct, frozen=True):
    """A process that joined: its launch, its host's name, and a digest of the host's addresses."""

    launch: Launch
    host: str
    machine: str


class Absent(Struct, frozen=True):
    """A node whose agent did not join: its name, its known ranks, and the tickets that joined."""

    host: str
    ranks: tuple[int, ...]
    tickets: tuple[int, ...] = ()


class Counted(Struct, frozen=True):
    """The place of each process that joined (ticket -> launch), and the nodes that did not (node rank -> node)."""

    launches: Mapping[int, Launch]
    absent: Mapping[int, Absent]

    @property
    def nnodes(self) -> int:
        """Return the number of nodes in the job."""
        return next(iter(self.launches.values())).nnodes


def unplaced(launch: Launch, claim: Told) -> Launch:
    """Return the launch of a process without a node rank: one node where all ranks are there, else unknown yet."""
    if launch.local_world_size >= launch.world_size:
        return launch
    most = launch.world_size - launch.local_world_size + 1
    return replace(launch, node_rank=launch.rank, nnodes=most, told=claim)


def with_place(facts: NodeFacts, launch: Launch) -> NodeFacts:
    """Return the facts with the place of the node, where its launcher did not give it.

    On one host a loopback address is as good as any other.
    """
    if isinstance(facts.launch, Missing) or facts.launch.told == "place":
        return facts
    master = facts.master
    if not isinstance(master, Missing) and master.outcome == "loopback" and launch.nnodes == 1:
        master = replace(master, outcome="serving", detail="")
    return replace(facts, launch=launch, master=master)


def missing_ranks(processes: Collection[LaunchedProcess]) -> set[int]:
    """Return the ranks that did not come, but for those of nodes whose agent is there: it knows how many it has."""
    sites = _sites(dict(enumerate(processes)))
    world_size = max((process.launch.world_size for process in processes), default=0)
    missing = set(range(world_size)) - {process.launch.rank for process in processes}
    ranks_with_agent = {rank for site in sites if _agent(site) is not None for rank in _expected(site)}
    elsewhere = len(missing) - sum(_shortfall(site) for site in sites if _agent(site) is not None)
    if elsewhere <= 0:
        return set()
    return missing - ranks_with_agent if len(missing - ranks_with_agent) == elsewhere else missing


def counted(
    processes: Mapping[int, LaunchedProcess], silent: Mapping[int, str], said_nodes: int | None = None
) -> Counted:
    """Return the place of every process: hosts are nodes, in the order of their lowest ranks.

    `silent`: the hosts of ranks that said they cannot come. `said_nodes`: --nnodes, which may contradict the count.
    """
    sites = _sites(processes)
    absent = [*_absent(missing_ranks(list(processes.values())), sites, silent)]
    nodes: list[tuple[int, Absent | None, tuple[int, ...]]] = [
        (min(process.launch.rank for process in site.values()), None, tuple(site))
        for site in sites
        if _agent(site) is not None
    ]
    nodes += [(min(node.ranks), node, node.tickets) for node in absent]
    nodes.sort(key=lambda entry: entry[0])
    launches: dict[int, Launch] = {}
    for node_rank, (_, _, tickets) in enumerate(nodes):
        for ticket in tickets:
            local_size = len(tickets)
            launch = replace(processes[ticket].launch, node_rank=node_rank, nnodes=len(nodes))
            launches[ticket] = _placed(launch, local_size, said_nodes)
    return Counted(launches, {number: node for number, (_, node, _) in enumerate(nodes) if node is not None})


def _placed(launch: Launch, local_size: int, claimed_nodes: int | None) -> Launch:
    contradictions = launch.contradictions
    if claimed_nodes not in (None, launch.nnodes):
        values = {
            "--nnodes": str(claimed_nodes),
            f"{launch.source} (hosts of its processes)": str(launch.nnodes),
        }
        contradictions = (*contradictions, Contradiction("nnodes", values))
    return replace(
        launch,
        local_world_size=local_size if launch.told == "rank" else launch.local_world_size,
        hosts=launch.hosts if len(launch.hosts) == launch.nnodes else (),
        contradictions=contradictions,
        told="place",
    )


def _sites(processes: Mapping[int, LaunchedProcess]) -> list[dict[int, LaunchedProcess]]:
    """Return the processes of each node. Nodes with the same host name are distinguished by their addresses.

    An address that comes or goes between two starts on a node makes no second node of it.
    """
    by_machine: dict[tuple[str, str], dict[int, LaunchedProcess]] = {}
    for ticket, process in processes.items():
        by_machine.setdefault((process.host, process.machine), {})[ticket] = process
    for key, site in list(by_machine.items()):
        homes = [
            home for home, there in by_machine.items() if home[0] == key[0] and _agent(there) is not None
        ]
        if _agent(site) is None and len(homes) == 1:
            by_machine[homes[0]].update(by_machine.pop(key))
    return [part for site in by_machine.values() for part in _split(site)]


def _split(site: dict[int, LaunchedProcess]) -> list[dict[int, LaunchedProcess]]:
    """Return each process as a node of its own where they have no local ranks (in a shared folder)."""
    agents = {process.launch.rank for process in site.values() if process.launch.is_agent}
    if len(agents) > 1 and all(process.launch.told == "rank" for process in site.values()):
        return [{ticket: process} for ticket, process in site.items()]
    return [site]


def _agent(site: Mapping[int, LaunchedProcess]) -> Launch | None:
    return next((process.launch for process in site.values() if process.launch.is_agent), None)


def _shortfall(site: Mapping[int, LaunchedProcess]) -> int:
    """Return how many ranks of the node did not join, by its processes' local world size; 0 where it is unknown."""
    return max(max(process.launch.local_world_size for process in site.values()) - len(site), 0)


def _expected(site: Mapping[int, LaunchedProcess]) -> range:
    """Return the ranks of the node where they are numbered node by node, as launchers do unless told otherwise."""
    agent = _agent(site)
    return range(0) if agent is None else range(agent.rank, agent.rank + agent.local_world_size)


def _absent(
    missing: set[int], sites: Collection[Mapping[int, LaunchedProcess]], silent: Mapping[int, str]
) -> Iterator[Absent]:
    """Yield the nodes that are not there: by the host where it is known, else by ranks that follow each other."""
    left = set(missing)
    for site in sites:
        if _agent(site) is None:
            there = [process.launch for process in site.values()]
            ranks = {launch.rank for launch in there} | {launch.rank - launch.local_rank for launch in there}
            yield Absent(next(iter(site.values())).host, tuple(sorted(ranks)), tuple(site))
            left -= ranks
    for host in dict.fromkeys(silent[rank] for rank in sorted(left) if rank in silent):
        ranks = {rank for rank in left if silent.get(rank) == host}
        yield Absent(host, tuple(sorted(ranks)))
        left -= ranks
    while left:
        last = first = min(left)
        while last + 1 in left:
            last += 1
        name = f"rank-{first}" if first == last else f"ranks-{first}-{last}"
        yield Absent(name, tuple(range(first, last + 1)))
        left -= set(range(first, last + 1))
