"""Detects which process of the job this is: by the launchers in turn, with the user's flags on top."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from ncclcheck.launch.flags import LaunchFlags
from ncclcheck.launch.launcher_registry import all_launchers, node_count_source
from ncclcheck.launch.launchers.node_index import detect_node_index
from ncclcheck.launch.line.launch_line import LaunchLine
from ncclcheck.launch.reading import DEFAULT_PORT, port
from ncclcheck.model.errors import UsageError
from ncclcheck.model.launch import NOT_RANKED, Contradiction, Launch


def detect(environ: Mapping[str, str], flags: LaunchFlags, line: LaunchLine | None = None) -> Launch:
    """Return this process's place in the job.

    Flags win over the job's own command line (`line`), which is still to be started here; that over launchers;
    torchrun over the launcher that started it; a real launcher over RANK and WORLD_SIZE that may be left over.
    Raises UsageError for a place that cannot be (rank 4 of 4) or is half given.
    """
    found = _started_by(environ, may_be_stale=False)
    if not found and line is None and flags.node_rank is None:
        line = _line_in_environment(environ)
    found += _started_by(environ, may_be_stale=True)
    if not found and line is None and (numbered := detect_node_index(environ, flags.nnodes)) is not None:
        found.append(numbered)
    by_line = [_of_line(line, found, flags)] if line is not None else []
    base = next(iter([*by_line, *found]), None)
    launch = _with_flags(base, flags, environ)
    _refuse_impossible(launch)
    return replace(launch, contradictions=tuple(_contradictions([*by_line, *found], flags, line)))


def _started_by(environ: Mapping[str, str], *, may_be_stale: bool) -> list[Launch]:
    """Return the place by each launcher that started this process, in the order of their precedence."""
    return [
        launch
        for launcher in all_launchers()
        if launcher.detect is not None
        and launcher.may_be_stale == may_be_stale
        and (launch := launcher.detect(environ)) is not None
    ]


def _line_in_environment(environ: Mapping[str, str]) -> LaunchLine | None:
    """Return the job of a launcher that has yet to start, where the environment describes it."""
    lines = (launcher.describe_job(environ) for launcher in all_launchers() if launcher.describe_job)
    return next((line for line in lines if line is not None), None)


def _of_line(line: LaunchLine, found: list[Launch], flags: LaunchFlags) -> Launch:
    """Return the place of the launcher that the line starts: one per node, whatever started this process."""
    if line.remote_hosts and flags.node_rank is None:
        raise UsageError(
            f"{line.program} starts the other {line.nnodes - 1} nodes itself, and ncclcheck before it would check this "
            f"one alone: add --hosts {','.join(line.remote_hosts)} before '--', or start ncclcheck on each node"
        )
    nnodes = line.nnodes
    around = next((launch for launch in found if launch.told == "place"), None)
    if line.min_nodes is not None and around and line.min_nodes <= around.nnodes <= nnodes:
        nnodes = around.nnodes  # so many are there, whatever the line would take
    by_arrival = line.rendezvous == "c10d" and nnodes > 1
    rank = NOT_RANKED if by_arrival else line.node_rank or 0
    elastic = by_arrival and line.min_nodes is not None and line.min_nodes < nnodes
    return Launch(
        source="launch-line",
        rank=rank,
        world_size=nnodes,
        local_rank=0,
        local_world_size=1,
        node_rank=rank,
        nnodes=nnodes,
        master_addr=line.master_addr if nnodes > 1 else None,
        master_port=line.master_port or DEFAULT_PORT,
        nproc_per_node=line.nproc_per_node,
        job_id="launch-line",  # nodes with another --rdzv-id join, too, so that the report can say so
        hosts=next(
            (launch.hosts for launch in found if len(launch.hosts) == nnodes and launch.node_rank == rank), ()
        ),
        rendezvous="c10d" if by_arrival else "static",
        serves_store=line.hosts_store if by_arrival else None,
        local_addr=line.local_addr,
        min_nodes=line.min_nodes if elastic else None,
        rendezvous_id=line.rendezvous_id,
    )


def _with_flags(base: Launch | None, flags: LaunchFlags, environ: Mapping[str, str]) -> Launch:
    by_line = base is not None and base.source == "launch-line"
    if base is None or (flags.nnodes is not None and flags.node_rank is not None and not by_line):
        return _by_flags(base, flags, environ)
    launch = base
    if flags.nnodes is not None and launch.told == "place":
        launch = replace(launch, nnodes=flags.nnodes)
    if flags.node_rank is not None and launch.told != "place":
        raise UsageError(
            f"--node-rank {flags.node_rank} alone: {launch.source} tells this process its rank, {launch.rank}, and "
            "nodes are counted by host: leave --node-rank out, or add --nnodes"
        )
    if flags.node_rank is not None:
        launch = replace(launch, node_rank=flags.node_rank)
    if by_line:
        launch = _one_per_node(launch, environ, ranked=flags.node_rank is not None)
    if flags.master_addr is not None or flags.master_port is not None:
        launch = replace(
            launch,
            master_addr=flags.master_addr or launch.master_addr,
            master_port=flags.master_port or launch.master_port,
            shared_store=False,
        )
    if flags.nproc_per_node is not None:
        launch = replace(launch, nproc_per_node=flags.nproc_per_node)
    return launch


def _one_per_node(launch: Launch, environ: Mapping[str, str], *, ranked: bool) -> Launch:
    """Return the launch of a line with what flags say of its nodes: its processes are one per node, as before."""
    return replace(
        launch,
        rank=launch.node_rank,
        world_size=launch.nnodes,
        master_addr=launch.master_addr or (environ.get("MASTER_ADDR") if launch.nnodes > 1 else None),
        rendezvous="static" if ranked else launch.rendezvous,
    )


def _by_flags(base: Launch | None, flags: LaunchFlags, environ: Mapping[str, str]) -> Launch:
    nnodes = 1 if flags.nnodes is None else flags.nnodes
    if nnodes > 1 and flags.node_rank is None:
        raise UsageError(
            f"--nnodes {nnodes} says nothing about which node this is: add --node-rank 0..{nnodes - 1}, "
            "or start it on every node with torchrun, srun or mpirun"
        )
    master_addr = flags.master_addr or environ.get("MASTER_ADDR") or (base.master_addr if base else None)
    node_rank = flags.node_rank or 0
    return Launch(
        source="flags" if flags.any_given else "none",
        rank=node_rank,
        world_size=nnodes,
        local_rank=base.local_rank if base else 0,
        local_world_size=base.local_world_size if base else 1,
        node_rank=node_rank,
        nnodes=nnodes,
        master_addr=master_addr if nnodes > 1 else None,
        master_port=flags.master_port or port(environ, DEFAULT_PORT),
        nproc_per_node=flags.nproc_per_node,
        hosts=base.hosts if base and len(base.hosts) == nnodes else (),
    )


def _refuse_impossible(launch: Launch) -> None:
    if launch.source == "flags" and launch.nnodes == 1 and launch.node_rank > 0:
        raise UsageError(
            f"--node-rank {launch.node_rank} needs --nnodes: without it the job has this one node"
        )
    if launch.rendezvous == "c10d" and launch.node_rank == NOT_RANKED:
        return
    if launch.told == "place" and not 0 <= launch.node_rank < launch.nnodes:
        raise UsageError(
            f"node rank {launch.node_rank} is impossible in a job of {launch.nnodes} nodes: "
            f"expected 0..{launch.nnodes - 1}"
        )
    if not 0 <= launch.rank < launch.world_size:
        raise UsageError(
            f"rank {launch.rank} is impossible in a world of {launch.world_size}: expected 0..{launch.world_size - 1}"
        )
    if not 0 <= launch.local_rank < launch.local_world_size:
        raise UsageError(
            f"local rank {launch.local_rank} is impossible with {launch.local_world_size} processes on this node: "
            f"expected 0..{launch.local_world_size - 1}"
        )
    if launch.nnodes > 1 and not launch.master_addr:
        raise UsageError(
            f"no address of the first node is known for these {launch.nnodes} nodes: "
            "give --master-addr, or set MASTER_ADDR on every node"
        )


def _contradictions(found: list[Launch], flags: LaunchFlags, line: LaunchLine | None) -> list[Contradiction]:
    nodes_by_source = {
        _named(launch, line): str(launch.nnodes) for launch in found if _says_nodes(launch, found[0])
    }
    if flags.nnodes is not None:
        nodes_by_source = {"--nnodes": str(flags.nnodes), **nodes_by_source}
    contradictions = []
    if len(set(nodes_by_source.values())) > 1:
        contradictions.append(Contradiction("nnodes", nodes_by_source))
    ranked = found and found[0].node_rank != NOT_RANKED
    if ranked and flags.node_rank is not None and flags.node_rank != found[0].node_rank:
        source = line.program if line else found[0].source
        ranks = {"--node-rank": str(flags.node_rank), source: str(found[0].node_rank)}
        contradictions.append(Contradiction("node_rank", ranks))
    torchrun = next((launch for launch in found if launch.source in ("launch-line", "torchrun")), None)
    if torchrun and torchrun.nproc_per_node and flags.nproc_per_node not in (None, torchrun.nproc_per_node):
        name = line.program if line else "torchrun"
        counts = {"--nproc-per-node": str(flags.nproc_per_node), name: str(torchrun.nproc_per_node)}
        contradictions.append(Contradiction("nproc_per_node", counts))
    return contradictions


def _says_nodes(launch: Launch, first: Launch) -> bool:
    """Return whether the number of nodes of a launch is what its source says, and comparable with the others'."""
    if launch.source == "environment" and launch is not first:
        # WORLD_SIZE counts GPUs and the launcher tasks: a multiple of the nodes is no contradiction.
        nnodes = first.nnodes if first.told == "place" else first.world_size
        return bool(launch.world_size % nnodes)
    return launch.told == "place"


def _named(launch: Launch, line: LaunchLine | None) -> str:
    return line.program if line and launch.source == "launch-line" else node_count_source(launch.source)
