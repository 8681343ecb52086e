"""Which hosts or ranks to name for a cause whose lines do not name them. Pure."""

from __future__ import annotations

import re

from ncclcheck.checks.logs._causes import Suspect
from ncclcheck.checks.logs._job_rows import job_of, pod_rows
from ncclcheck.checks.logs._view import (
    culprits,
    exceptions,
    exits,
    failures,
    hosts_of,
    hosts_of_address,
    is_local,
    is_place,
    remarks,
    timeouts,
)
from ncclcheck.checks.logs._works import shows_work
from ncclcheck.model.events import Log, LogPosition, Remark, WorkerExit

_BOTH_ENDS = 2
_ENOUGH_WAITED = 3
_FEW, _MOST_RANKS = 3, 65536
_ABORTED = -6
_MOST_SHOWN = 5  # of the hosts of a cause, by its lines of evidence
_LINES_OF_HELP = 14  # of a text of Open MPI, down to its fields
_FIRST_OF_NODE, _FIRST_OF_MPI = ") local_rank: ", "Process name: "  # in torchrun's words, in Open MPI's
_LOST_NODE = ("ray-node-died", "slurm-node-lost", "ssh-unreachable")  # groups of the tables
_OF_MACHINES = frozenset(
    {"gpu-hardware", "host-oom-kill", "driver-cuda-mismatch", "ib-link-or-fabric", "nvlink-fabric-service"}
)
_CHECK_ITS_LOG = re.compile(r"Please check rank (?P<rank>\d{1,6}) logs for faulty rank")
# An image or a setting that all nodes share: where all of them show it, none of them is to blame.
_OF_IMAGE = frozenset(
    {
        "gdr-unavailable",
        "ib-hca-selection",
        "roce-gid",
        "python-env",
        "unsupported-gpu-arch",
        "ifname-missing",
    }
)
# Who speaks the lines of these causes waited for another, or lost it to something between the two.
_SPEAKER_WAITED = frozenset({"slow-rank-timeout", "world-size-mismatch", "idle-connection-dropped"})


def attributed(log: Log, suspect: Suspect) -> tuple[str, ...]:
    """Return what the suspect's lines name, with the node of a pod and the rank that ended first on a host."""
    if suspect.slug == "world-size-mismatch" and (pending := _pending(log)):
        return pending
    named = _attributed(log, suspect)
    if suspect.slug in _OF_IMAGE and _are_all(log, named) and _say_the_same(suspect, named):
        return ()
    return named if suspect.blames_nobody else _with_its_rank(log, suspect, _with_nodes(log, suspect, named))


def _say_the_same(suspect: Suspect, named: tuple[str, ...]) -> bool:
    """Return True if all of them speak the first line of evidence, but for its numbers; of many not all are shown."""
    wordings = [
        (re.sub(r"\d+", "", line.observed), line.hosts or (line.subject,)) for line in suspect.evidence
    ]
    speakers = {name for wording, names in wordings if wording == wordings[0][0] for name in names}
    hosts = {name for name in named if not name.startswith("rank ")} or set(named)
    return len(hosts) > _MOST_SHOWN or hosts <= speakers


def _far_end(log: Log) -> tuple[str, ...]:
    """Return the only other end that Open MPI names where a process could not reach it, or rejected it."""
    ends = {
        remark.values["host"]
        for remark in remarks(log, "far-end")
        if any(0 < remark.place.line - alarm.place.line <= _LINES_OF_HELP for alarm in _of_open_mpi(log))
    }
    return tuple(ends) if len(ends) == 1 else ()


def _of_open_mpi(log: Log) -> list[Remark]:
    return [
        remark
        for remark in remarks(log, "message")
        if remark.values.get("group") in ("mpi-tcp", "mpi-inbound-dropped")
    ]


def _are_all(log: Log, named: tuple[str, ...]) -> bool:
    """Return True if these are all hosts of the log, or all ranks where it has no host, and more than one."""
    hosts = {host for host in hosts_of(log) if not is_local(host)}
    if hosts:
        return len(hosts) > 1 and hosts <= set(named)
    ranks = {event.place.rank for event in log.events if event.place.rank is not None}
    return len(ranks) > 1 and {f"rank {rank}" for rank in ranks} == set(named)


def _attributed(log: Log, suspect: Suspect) -> tuple[str, ...]:
    """Return the hosts or ranks that the suspect names, else who spoke its lines, else who ended first."""
    if suspect.hosts and all(host.isdecimal() for host in suspect.hosts):
        return _with_a_name(log) or suspect.hosts  # a heading counts the nodes, and a launcher names them
    if suspect.between_nodes and (far := _far_end(log)):
        return far
    if suspect.hosts or suspect.blames_nobody:
        return suspect.hosts
    places = () if suspect.slug in _SPEAKER_WAITED else suspect.places
    spoken = culprits(log, _of(places, suspect.between_nodes))
    if spoken:
        return spoken
    hosts = hosts_of(log)
    if suspect.between_nodes:
        if not hosts:
            return _only_address(log)
        return hosts if len(hosts) <= _BOTH_ENDS else ()
    return (
        _with_host(log, hosts, culprits(log, ended_first(log)))
        or _that_did_not_wait(log)
        or (hosts if len(hosts) == 1 else ())
        or _only_address(log)
    )


def _with_host(log: Log, hosts: tuple[str, ...], ranks: tuple[str, ...]) -> tuple[str, ...]:
    """Return the rank that Open MPI names with the only host of the log before it."""
    alone = len(hosts) == 1 and len(ranks) == 1 and ranks[0].startswith("rank ")
    return (*hosts, *ranks) if alone and any(_FIRST_OF_MPI in end.text for end in exits(log)) else ranks


def _pending(log: Log) -> tuple[str, ...]:
    """Return the few pods of the job that Kubernetes did not start: they are who is missing."""
    started = {remark.values["pod"]: remark.place.line for remark in remarks(log, "pod-running")}
    pods = {
        remark.values["pod"]
        for remark in remarks(log, "pod-pending")
        if started.get(remark.values["pod"], 0) < remark.place.line
    }
    jobs = {job_of(peer.partition(".")[0]) for peer in (*hosts_of(log), *started)}
    of_the_job = tuple(sorted(pod for pod in pods if job_of(pod) in jobs))
    return of_the_job if len(of_the_job) <= _FEW else ()


def _with_nodes(log: Log, suspect: Suspect, named: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names with the nodes of described pods, where the machine is to blame."""
    if suspect.slug not in _OF_MACHINES:
        return named
    nodes = [remark.values["node"] for remark in remarks(log, "pod-node") if remark.place.host in named]
    nodes += [
        row.values["node"] for row in pod_rows(log) if row.values["pod"] in named and "node" in row.values
    ]
    return tuple(dict.fromkeys((*nodes, *named)))


def _with_its_rank(log: Log, suspect: Suspect, named: tuple[str, ...]) -> tuple[str, ...]:
    """Return the only host that is named with the rank that the launcher saw fail first there."""
    if (
        len(named) != 1
        or named[0].startswith("rank ")
        or suspect.between_nodes
        or suspect.slug in _SPEAKER_WAITED
    ):
        return named
    first = ended_first(log)
    here = (None, named[0]) if len(hosts_of(log)) == 1 else (named[0],)  # else it may be of another host
    ranks = {place.rank for place in first if place.host in here and place.rank is not None}
    return (*named, f"rank {ranks.pop()}") if len(ranks) == 1 else named


def _with_a_name(log: Log) -> tuple[str, ...]:
    """Return who ended first, if a launcher says on which host."""
    named = culprits(log, ended_first(log))
    return named if any(not name.isdecimal() and not name.startswith("rank ") for name in named) else ()


def _only_address(log: Log) -> tuple[str, ...]:
    """Return the address that all failed connections of the log lead to; of a pod the name without its service, too."""
    failed_addresses = {failure.address.strip("[]") for failure in failures(log) if is_place(failure.address)}
    addresses = sorted(failed_addresses, key=len)
    if len(addresses) == _BOTH_ENDS and addresses[1].startswith(f"{addresses[0]}."):
        return tuple(addresses)
    return tuple(addresses) if len(addresses) == 1 else ()


def _that_did_not_wait(log: Log) -> tuple[str, ...]:
    """Return the only rank that did not time out, where all others did."""
    waited = {timeout.place.rank for timeout in timeouts(log) if timeout.place.rank is not None}
    absent = set(range(max(waited, default=0))) - waited
    enough = len(waited) >= _ENOUGH_WAITED and max(waited) < _MOST_RANKS
    return tuple(f"rank {rank}" for rank in absent) if enough and len(absent) == 1 else ()


def ended_first(log: Log) -> list[LogPosition]:
    """Return the rank that the launcher saw fail first, or the only one that failed by itself; else nothing."""
    ends = _telling(log)
    own_ends = {end.place.rank: end.place for end in ends if end.exit_code not in (-15, _ABORTED)}
    first = [end.place for end in ends if end.first]
    if first:
        return first[-1:]
    if not own_ends and len(ends) == 1 and exceptions(log) and _FIRST_OF_NODE in ends[0].text:
        own_ends = {ends[0].place.rank: ends[0].place}  # a C++ exception aborts the process that raised it
    if len(own_ends) == 1:
        return [place for place in own_ends.values() if place.rank is not None or place.host]
    raised = {
        exception.place.rank: exception.place
        for exception in exceptions(log)
        if exception.place.rank is not None
    }
    return list(raised.values()) if len(raised) == 1 else []


def _telling(log: Log) -> list[WorkerExit]:
    """Return the ends of workers that tell who failed first.

    At the start all ranks fail alike, so which of them torchrun met first is chance. Open MPI repeats below what the
    node has said better.
    """
    ends = [end for end in exits(log) if _FIRST_OF_NODE not in end.text or end.place.host or shows_work(log)]
    better = [end for end in ends if not end.text.lstrip().startswith(_FIRST_OF_MPI)]
    return better if any(end.place.host or end.place.rank is not None for end in better) else ends


def without_a_word(log: Log) -> tuple[str, ...]:
    """Return the rank that ended first, if it does not itself say that it only waited for, or lost, another."""
    first = ended_first(log)
    waited = {timeout.place.rank for timeout in (*timeouts(log), *exceptions(log, "after-effect"))}
    return culprits(log, [place for place in first if place.rank not in waited])


def _of(places: tuple[LogPosition, ...], between_nodes: bool) -> list[LogPosition]:
    """Return the first of the places that says where it is; of a cause between nodes one of each of two hosts."""
    located = [place for place in places if place.rank is not None or place.host]
    if not between_nodes:
        return located[:1]
    by_host: dict[object, LogPosition] = {}
    for place in located:
        by_host.setdefault(place.host or place.rank, place)
    return list(by_host.values())[:_BOTH_ENDS]


def lost_nodes(log: Log) -> tuple[str, ...]:
    """Return the nodes that the log itself calls lost, dead or failed, or whose actor died, where there are few."""
    lost = [
        remark
        for remark in remarks(log, "message", "scheduler-end", "actor-ip")
        if remark.values.get("group") in _LOST_NODE
        or "node" in remark.values
        or (remark.place.host and "because its node has died" in remark.text)
    ]
    named = tuple(dict.fromkeys(remark.values.get("node") or remark.place.host or "" for remark in lost))
    return named if len(named) <= _BOTH_ENDS and all(named) else ()


def stalled(log: Log) -> tuple[str, ...]:
    """Return the few ranks that Horovod says it waits for, or that lack among those it has."""
    missing: set[int] = set()
    for remark in remarks(log, "stalled-ranks"):
        ready = _ranks(remark.values.get("ready", ""))
        gaps = set(range(max(ready, default=0))) - ready if max(ready, default=0) < _MOST_RANKS else set()
        missing |= _ranks(remark.values.get("missing", "")) | gaps
    return tuple(f"rank {rank}" for rank in sorted(missing)) if len(missing) <= _FEW else ()


def gone_tasks(log: Log) -> tuple[str, ...]:
    """Return the few processes whose heartbeats JAX's coordinator misses, named on its line or directly below it."""
    gone = remarks(log, "gone-task")
    named = {int(remark.values["task"]) for remark in gone if "task" in remark.values}
    above = {(remark.place.file, remark.place.line) for remark in gone}
    for remark in sorted(remarks(log, "late-task"), key=lambda late: (late.place.file, late.place.line)):
        file, line = remark.place.file, remark.place.line
        if (file, line - 1) in above and remark.text.startswith("/job:"):
            named.add(int(remark.text.rpartition(":")[2]))
            above.add((file, line))
    return tuple(f"rank {rank}" for rank in sorted(named)) if len(named) <= _FEW else ()


def _ranks(text: str) -> set[int]:
    return {int(number) for number in text.split(",") if number.strip().isdecimal()}


def asked_after(log: Log) -> tuple[str, ...]:
    """Return the rank whose log torch's monitored barrier asks for, where that rank says nothing of the barrier."""
    barriers = remarks(log, "monitored-barrier")
    ranks = {match["rank"] for remark in barriers if (match := _CHECK_ITS_LOG.search(remark.text))}
    spoke = {str(remark.place.rank) for remark in barriers}
    return tuple(f"rank {rank}" for rank in ranks - spoke) if len(ranks) == 1 else ()


def rejected_by_cuda(log: Log) -> tuple[str, ...]:
    """Return the only host or rank on which NCCL says that a CUDA call failed: such a call concerns that GPU alone."""
    rejections = [
        remark for remark in remarks(log, "nccl-warn") if remark.values.get("group") == "cuda-failure"
    ]
    hosts = {remark.place.host for remark in rejections}
    return culprits(log, [rejections[0].place]) if len(hosts) == 1 and rejections[0].place.host else ()


def closed_it(log: Log) -> tuple[str, ...]:
    """Return the only peer that closed a connection: its host where the log knows it, else its address."""
    addresses = {
        address
        for remark in remarks(log, "closed-by-peer")
        if (address := remark.values.get("address", "").partition("<")[0])[:1].isdigit()
    }
    if len(addresses) != 1:
        return ()
    address = addresses.pop()
    return hosts_of_address(log, address)[:1] or (address,)
