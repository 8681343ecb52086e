"""Which process of the job this is, as its launcher says."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct

# The name of a launcher (ncclcheck/launch/launchers), by its shape: a newer ncclcheck may know more of them.
LaunchSource: TypeAlias = Annotated[str, Meta(pattern="^[a-z][a-z0-9-]{0,30}$")]
NOT_RANKED = -1  # a node that gets its rank when it joins (torch's c10d rendezvous)
# What a launcher gives a process: its node and the number of nodes, or less; then the hosts show the rest.
Told: TypeAlias = Literal["place", "local-rank", "rank"]


class Contradiction(Struct, frozen=True, forbid_unknown_fields=True):
    """Two sources that say different things about the same quantity on one node."""

    quantity: str  # "nnodes", "node_rank", "world_size", ...
    said: dict[str, str]  # source -> value, e.g. {"--nnodes": "3", "SLURM_NNODES": "4"}


class Launch(Struct, frozen=True, forbid_unknown_fields=True):
    """One process of the job. The process with `local_rank` 0 is the node's agent."""

    source: (
        LaunchSource  # a launcher such as `torchrun` or `slurm`; `flags`, `launch-line` or `none` without one
    )
    rank: int  # counts the processes that the launcher started
    world_size: int
    local_rank: int
    local_world_size: int
    node_rank: int  # counts nodes; the rank, where the launcher says less than the place (`told`)
    # the most nodes there can be, where the launcher says less than the place, until all processes have joined and
    # are counted by host (`launch.by_hosts`)
    nnodes: int
    master_addr: str | None
    master_port: int
    nproc_per_node: int | None = None  # ranks that the job has on this node; None: unknown
    job_id: str = ""
    hosts: tuple[
        str, ...
    ] = ()  # the launcher's own list of node names, in node-rank order, where it gives one
    # with torch's c10d no node has a rank before it joins: node 0 is the host of the endpoint
    rendezvous: Literal["static", "c10d"] = "static"
    serves_store: bool | None = None  # c10d: torch on this node believes that it is the host of the endpoint
    local_addr: str | None = (
        None  # c10d: torchrun's --local-addr, the address that other nodes use for this one
    )
    min_nodes: int | None = None  # c10d: torch starts with so few nodes when no more join
    shared_store: bool = False  # the launcher already serves a TCPStore at the master address (torchrun)
    contradictions: tuple[Contradiction, ...] = ()
    told: Told = "place"  # what the launcher tells of the process's place
    rendezvous_id: str = ""  # of torchrun's command line (--rdzv-id)

    @property
    def is_agent(self) -> bool:
        """Whether this is the one process per node that collects facts and runs probes."""
        return self.local_rank == 0

    @property
    def most_node_ranks(self) -> int:
        """How many node ranks the processes may have before they are counted."""
        return self.nnodes if self.told == "place" else self.world_size

    @property
    def is_apart(self) -> bool:
        """Whether this is certainly another node than node 0."""
        return self.node_rank != 0 and (self.told == "place" or (self.told == "local-rank" and self.is_agent))
