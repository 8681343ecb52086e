"""NC703 nofile-low."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.hosts import not_reported
from ncclcheck.checks.registry import Answer, check
from ncclcheck.measure.job_ranks import ranks_of_job
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.finding import Evidence, Finding, Fix, NotKnown
from ncclcheck.model.formats.prose import plural
from ncclcheck.model.snapshot import Snapshot

OWN = 512  # of a rank that talks to nobody: libraries, the CUDA driver, the loaders of data
PER_PEER = 4
LEAST_OWN = 64


@check("NC703", "nofile-low", "A rank may open the files and sockets it needs", needs=("limits",))
def nofile_low(snapshot: Snapshot) -> Iterator[Answer]:
    """The limit of open files leaves room for one rank's sockets to all others.

    ## Why it matters
    Every rank of a Gloo group keeps a socket to every other one, the rank that serves the TCPStore one or more to each,
    and a DataLoader's workers pass a file for each tensor. The limit counts for each process. Beyond it a job of many
    ranks fails with "Too many open files" while a small one works.

    ## How to fix
    `ulimit -n` up to the hard limit needs no rights; beyond it `docker run --ulimit nofile=1048576`,
    /etc/security/limits.d, or `LimitNOFILE=` of the service that starts the job.

    ## Source
    getrlimit(2), RLIMIT_NOFILE. Gloo connects every pair (gloo/rendezvous/context.cc, connectFullMesh); TCPStore one
    connection per client. 512 and 4 for each other rank are ncclcheck's own estimate; with fewer than 64 and one for
    each other rank the job cannot start.
    """
    ranks = ranks_of_job(snapshot)
    for node, limits in snapshot.known("limits"):
        if isinstance(limits.nofile, Missing):
            yield NotKnown(f"RLIMIT_NOFILE: {limits.nofile}", (node.host,))
        elif limits.nofile is not None and limits.nofile < OWN + PER_PEER * ranks:
            yield _finding(node.host, limits.nofile, limits.nofile_hard, ranks)
    yield from not_reported(snapshot)


def _finding(host: str, limit: int, hard: Fact[int | None], ranks: int) -> Finding:
    need = OWN + PER_PEER * ranks
    fails = limit < LEAST_OWN + ranks
    room = "no limit" if hard is None else f"a hard limit of {hard}"
    hint = "" if isinstance(hard, Missing) else f" ({room})"
    raised = hard is None or (not isinstance(hard, Missing) and hard >= need)
    return Finding(
        "error" if fails else "warning",
        f"a process on {host} may open {limit} files{hint}: in a job of {plural(ranks, 'rank')} one rank "
        f"{'needs' if fails else 'may need'} up to {need} ('Too many open files')",
        (host,),
        (
            Evidence(
                (host,),
                "RLIMIT_NOFILE, soft",
                str(limit),
                f"at least {need}: {OWN} + {PER_PEER} for each of {ranks} ranks",
                "getrlimit",
            ),
        ),
        (
            Fix("raise the soft limit before the job starts", (f"ulimit -n {hard or need}",))
            if raised
            else Fix(
                "raise the hard limit where the job starts: container, batch system or login",
                ("docker run --ulimit nofile=1048576:1048576 ...",),
            ),
        ),
    )
