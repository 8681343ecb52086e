"""NC801 bench-hang."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ncclcheck.checks.hosts import named, verb
from ncclcheck.checks.measured import bench_of, not_measured
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.bench import RankFailure
from ncclcheck.model.finding import Evidence, Finding, Fix
from ncclcheck.model.snapshot import Snapshot

_STATES = {
    "died": "died",
    "stopped": "is stopped",
    "late": "did not arrive in time",
    "lost": "went silent",
    "error": "ended with an error",
    "hung": "has a GPU that hangs",
}
_FIXES = {
    "died": "find out why it ended: read the kernel log (out of memory) and the last lines of the worker",
    "stopped": (
        "find out what stopped the process (a debugger, job control, SIGSTOP), and continue it with SIGCONT"
    ),
    "late": "find out what blocks the process: its stack (py-spy dump), the load and the disks of the node",
    "lost": "check that the node is up and reachable, and why ncclcheck ended or hangs there (dmesg: out of memory)",
    "error": "read the error; the network checks of this report may name its cause",
    "hung": "look for errors of that GPU (dmesg | grep -i xid; nvidia-smi -q), drain the node and reset the GPU",
}


@check("NC801", "bench-hang", "Every rank finished the benchmark")
def bench_hang(snapshot: Snapshot) -> Iterator[Answer]:
    """Every rank arrived, none died, was stopped or hung during the benchmark, and all were gone after it.

    ## Why it matters
    A collective waits for all ranks. One missing rank blocks all others, which then look as if they hang too; only
    the named rank is the cause. A job on these nodes would hang in the same way.

    ## How to fix
    Check the named process and node. If every rank is inside a call and none makes progress, the network between them
    is the cause: see the network checks of this report.

    ## Source
    The supervisor of each node watches its workers (process state, and how far each one got). On a GPU a call is
    entered when the GPU has come to it, and a rank that waits asks its GPU to run a small kernel beside the call: a GPU
    that hangs does not, those that wait for it do.
    """
    bench = bench_of(snapshot)
    failures = bench.failures if bench else ()
    stuck = [failure for failure in failures if failure.state not in _STATES]
    if left := [failure for failure in failures if failure.is_interrupted]:
        yield _interrupted(left)
    for failure in failures:
        if failure.state in _STATES and not failure.is_interrupted:
            yield _culprit(failure)
    if stuck:
        yield _nobody_moves(stuck)
    if bench is not None and bench.undead:
        yield _undead(bench.undead)
    yield from not_measured(snapshot, points=False)


def _undead(names: Sequence[str]) -> Finding:
    hosts = tuple(dict.fromkeys(name.rpartition(" on ")[2] for name in names))
    return Finding(
        "error",
        f"SIGKILL did not end {', '.join(names)}: they hang in the kernel and hold their GPUs, memory and ports",
        hosts,
        (
            Evidence(
                hosts, "workers of the benchmark", ", ".join(names), "ended", "the supervisor of its node"
            ),
        ),
        (
            Fix(
                "start no job there; read the kernel log for what they hang in, and reset the GPU or restart the node",
                ("cat /proc/PID/stack", "dmesg -T | tail", "nvidia-smi"),
            ),
        ),
    )


def _interrupted(failures: Sequence[RankFailure]) -> Finding:
    """Return that somebody ended ncclcheck on nodes in the middle of it: a warning, since nothing is wrong there."""
    hosts = tuple(dict.fromkeys(failure.host for failure in failures))
    return Finding(
        "warning",
        f"ncclcheck was interrupted on {named(hosts)} (Ctrl-C or a signal), which ended its ranks there and the "
        f"measurement: that says nothing of {verb(hosts, 'the node', 'the nodes')}",
        hosts,
        tuple(_evidence(failure) for failure in failures),
        (Fix("run it again, and let all nodes finish"),),
    )


def _culprit(failure: RankFailure) -> Finding:
    detail = f": {failure.detail}" if failure.detail else ""
    return Finding(
        "error",
        f"rank {failure.rank} on {failure.host} {_STATES[failure.state]} ({failure.where}, waited "
        f"{failure.waited_s:.1f} s){detail}; the other ranks wait for it",
        (failure.host,),
        (_evidence(failure),),
        (Fix(_FIXES[failure.state]),),
    )


def _nobody_moves(failures: Sequence[RankFailure]) -> Finding:
    hosts = tuple(dict.fromkeys(failure.host for failure in failures))
    first = failures[0]
    who = (
        f"{len(failures)} ranks on {named(hosts)} are"
        if len(failures) > 1
        else f"rank {first.rank} on {first.host} is"
    )
    return Finding(
        "error",
        f"{who} stuck in {first.where} after {first.waited_s:.1f} s: {first.detail}",
        hosts,
        tuple(_evidence(failure) for failure in failures),
        (
            Fix(
                "see the network checks: a port, a direction or large packets are blocked between these nodes"
            ),
        ),
    )


def _evidence(failure: RankFailure) -> Evidence:
    return Evidence(
        (failure.host,),
        f"rank {failure.rank}",
        f"{failure.state} in {failure.where}" + (f": {failure.detail}" if failure.detail else ""),
        "finished",
        "the supervisor of its node",
    )
