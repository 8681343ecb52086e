"""NC912 world-size-mismatch."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec.structs import replace

from ncclcheck.checks.logs._causes import Suspect, cause, suspect
from ncclcheck.checks.logs._job_rows import job_of, pod_rows
from ncclcheck.checks.logs._network import tried
from ncclcheck.checks.logs._reruns import run_of
from ncclcheck.checks.logs._view import exceptions, finished_well, registered, remarks, silent_ranks
from ncclcheck.checks.logs._works import measured_apart
from ncclcheck.model.events import Event, Log, Registered, Remark
from ncclcheck.model.finding import Fix

# A command that lists some of the pods only
_CUT = re.compile(r"\b(?:head|tail)\b|(?<!\S)-l\b|selector|\bgrep .{0,40}(?:worker|master|launcher)")
_SEVERAL = 2


@cause(
    "NC912",
    "world-size-mismatch",
    "The number of workers does not match the world size",
    explains=("rank-exception", "port-in-use", "slow-rank-timeout"),
    fixes=(
        Fix(
            "start exactly WORLD_SIZE workers, each RANK once: check nnodes x nproc-per-node, a double "
            "launch (srun tasks and torchrun), a missing node, and stale workers",
            (
                "echo $RANK $WORLD_SIZE $SLURM_NTASKS",
                "ncclcheck preflight --select world-size-mismatch,rank-duplicate,node-silent",
            ),
        ),
    ),
)
def world_size_mismatch(log: Log) -> Iterator[Suspect]:
    """The number of registered workers differs from the world size, or two have the same rank.

    ## Why it matters
    With too few workers the job waits until its timeout; with too many, or duplicates, ranks overwrite each
    other.

    ## How to fix
    Start each rank once: not srun with several tasks around a launcher that spawns too, no left-over worker of
    an older job.

    ## Source
    torch TCPStore (waitForWorkers), _store_based_barrier; NCCL bootstrap.cc (`has already checked in`,
    `mismatch in rank count`). nccl-tests common.cu: one process prints the ranks of all (MPI_SUPPORT).
    """
    mismatch = (
        _apart(log)
        or _beyond(log)
        or _too_many_launchers(log)
        or _each_alone(log)
        or _one_number(log)
        or _sizes_differ(log)
        or _too_few_pods(log)
    )
    if mismatch:
        yield mismatch
        return
    twice = remarks(log, "already-checked-in")
    counts = [registration for registration in registered(log) if _is_too_many(log, registration)]
    differ = remarks(log, "rank-count")
    if twice or counts or differ:
        lines = [*twice, *counts, *differ]
        yield suspect(
            "More workers registered than the world size says, or two with the same rank."
            if not differ
            else "The ranks have different world sizes.",
            lines,
            hosts=tuple(
                dict.fromkeys(f"rank {remark.values['rank']}" for remark in twice if "rank" in remark.values)
            ),
        )
        return
    if here := _coordinator_is_here(log):
        yield here
        return
    if few := _few(log):
        missing = silent_ranks(log)
        named = few[-1].expected - few[-1].joined == len(missing) < few[-1].joined  # most are there
        blamed = bool(tried(log)) or bool(exceptions(log)) or bool(remarks(log, "name-resolution"))
        found = suspect(
            f"Only {few[-1].joined} of {few[-1].expected} workers registered"
            + (f"; the log has no line of rank {', '.join(map(str, missing[:8]))}." if named else "."),
            few,
            confidence="possible" if blamed else "likely",
            hosts=tuple(f"rank {rank}" for rank in missing[:8]) if named else (),
            explains=(),
        )
        yield replace(found, blames_nobody=not named)


def _few(log: Log) -> list[Registered]:
    """Return the counts of too few workers; none of those that had all been there before, for an earlier group."""
    found: list[Registered] = []
    sizes_met: set[tuple[str, int]] = set()
    for count in registered(log):
        if count.joined == count.expected:
            sizes_met.add((count.place.file, count.expected))
        elif count.joined < count.expected and (count.place.file, count.expected) not in sizes_met:
            found.append(count)
    return found


def _is_too_many(log: Log, registration: Registered) -> bool:
    """Return True if more registered than are expected: after a restart the store still counts the first attempt's."""
    again = any(
        start.place.file == registration.place.file and start.place.line < registration.place.line
        for start in remarks(log, "workers-again")
    )
    return registration.joined > registration.expected and not again


def _apart(log: Log) -> Suspect | None:
    """Return that processes of nccl-tests which were started together each measured alone."""
    apart = measured_apart(log)
    if not apart:
        return None
    found = suspect(
        f"Processes that were started together each measured alone: two have rank {apart[0].place.rank}. "
        "nccl-tests was built without MPI (make MPI=1), or with another MPI than that of mpirun or srun.",
        apart,
        explains=(),
    )
    return replace(found, blames_nobody=True)


def _one_number(log: Log) -> Suspect | None:
    """Return that two hosts have the same number of a node, where ranks waited for each other in vain."""
    waited: list[Event] = [*remarks(log, "store-wait"), *_few(log)]
    host_of: dict[str, Remark] = {}
    for remark in remarks(log, "node-number") if waited else ():
        number = remark.values.get("node") or remark.values["number"]
        first = host_of.setdefault(number, remark)
        if first.place.host and remark.place.host and first.place.host != remark.place.host:
            return suspect(
                f"{first.place.host} and {remark.place.host} were both started as node {number}: the launcher reads "
                "another setting than the one that was given (NODE_RANK, not RANK), or a command was copied.",
                [first, remark, *waited],
                confidence="likely",
                hosts=(remark.place.host, first.place.host),
            )
    return None


def _sizes_differ(log: Log) -> Suspect | None:
    """Return that hosts were started for different numbers of nodes, or of processes where all must have as many."""
    asked: dict[str, Remark] = {}
    for remark in () if finished_well(log) else remarks(log, "size-asked"):
        if remark.place.host and "sbatch" not in remark.text:
            asked[remark.place.host] = remark  # of several attempts the last
    sizes = {host: (remark.values["nodes"], remark.values.get("gpus")) for host, remark in asked.items()}
    if not sizes or len(set(sizes.values())) == 1 or "1" in {nodes for nodes, _ in sizes.values()}:
        return None
    commands = "; ".join(
        f"{host}: {nodes} nodes" + (f" with {gpus} processes each" if gpus else "")
        for host, (nodes, gpus) in list(sizes.items())[:4]
    )
    found = suspect(
        f"The hosts were started for jobs of different sizes ({commands}), so some wait for ranks that never come.",
        list(asked.values()),
        confidence="likely",
    )
    return replace(found, blames_nobody=True)


def _coordinator_is_here(log: Log) -> Suspect | None:
    """Return that JAX's coordinator of several processes is at loopback, and some never joined."""
    alone = remarks(log, "local-coordinator")
    absent = [remark for remark in remarks(log, "message") if remark.values.get("group") == "jax-processes"]
    if not alone or not absent:
        return None
    return suspect(
        f"The job is to have {alone[0].values.get('processes', 'several')} processes and its coordinator is "
        "this machine only: the others were not started, or do not look here.",
        [*alone, *absent],
        confidence="likely",
    )


def _each_alone(log: Log) -> Suspect | None:
    """Return that MPI started several processes, and each of them takes itself for the only one."""
    started, alone = remarks(log, "mpi-startup"), remarks(log, "world-of-one")
    if len({line.values["rank"] for line in started}) < _SEVERAL or len(alone) < _SEVERAL:
        return None
    found = suspect(
        f"mpirun started {len(started)} processes, and each says that it is the only one: they are built for another "
        "MPI than the one that started them.",
        [*started[:2], *alone],
        confidence="likely",
    )
    return replace(found, blames_nobody=True)


def _too_many_launchers(log: Log) -> Suspect | None:
    """Return that more tasks of srun or mpirun started a launcher than its nodes, and some joined no other."""
    alone = [event for event in exceptions(log, "after-effect") if "Rendezvous" in event.class_name]
    started: dict[int, Remark] = {}
    for remark in remarks(log, "size-asked"):
        if remark.place.rank is not None and "torchrun" in remark.text:
            started.setdefault(remark.place.rank, remark)
    nodes = {int(remark.values["nodes"]) for remark in started.values()}
    if not alone or len(nodes) != 1 or len(started) <= max(nodes):
        return None
    found = suspect(
        f"torchrun was told of {max(nodes)} nodes, and {len(started)} tasks started it: one task per node is right.",
        [*started.values(), *alone],
        confidence="likely",
    )
    return replace(found, blames_nobody=True)


def _too_few_pods(log: Log) -> Suspect | None:
    """Return that Kubernetes lists fewer pods of the job than nodes were asked for, where ranks waited in vain."""
    asked = [entry for entry in remarks(log, "size-asked") if entry.place.host]
    waited: list[Event] = [*remarks(log, "store-wait"), *_few(log)]
    is_cut = any(_CUT.search(remark.text) for remark in remarks(log, "kubernetes"))
    if not asked or not waited or is_cut or finished_well(log):
        return None
    jobs = {job_of(entry.place.host or "") for entry in asked}
    pods = {row.values["pod"]: row for row in pod_rows(log) if job_of(row.values["pod"]) in jobs}
    nodes = {int(entry.values["nodes"]) for entry in asked}
    speakers = {entry.place.host for entry in asked}
    if len(jobs) != 1 or len(nodes) != 1 or not 1 < len(pods) < min(nodes) or not speakers <= set(pods):
        return None
    found = suspect(
        f"The job is started for {min(nodes)} nodes, and Kubernetes lists {len(pods)} pods of it.",
        [*asked, *pods.values(), *waited],
        confidence="likely",
    )
    return replace(found, blames_nobody=True)


def _beyond(log: Log) -> Suspect | None:
    """Return that a rank is not in the world, or that two processes say that they are the same rank."""
    beyond = remarks(log, "rank-beyond")
    asked = [remark for remark in beyond if "ranks" in remark.values]
    members = [remark for remark in beyond if "members" in remark.values]
    over = [remark for remark in members if int(remark.values["member"]) > int(remark.values["members"])]
    numbers = [
        (remark.values["global"], remark.values["members"], run_of(log, remark.place.line))
        for remark in members
    ]
    twice = [remark for remark, number in zip(members, numbers, strict=True) if numbers.count(number) > 1]
    all_twice = bool(twice) and len(twice) == len(members)
    if not (asked or over or all_twice):
        return None
    return suspect(
        "A rank is higher than the world size allows: the numbers of nodes or of ranks per node differ."
        if asked or over
        else "Every rank is there twice: two tasks of the launcher start the same ranks.",
        [*asked, *over, *(twice if all_twice else ())],
        confidence="certain" if asked or over else "likely",
        explains=("rank-exception", "firewall-blocked-ports", "port-in-use"),
    )
