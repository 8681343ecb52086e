"""NC103 world-size-mismatch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ncclcheck.checks.hosts import named
from ncclcheck.checks.launch._claims import Claim, claims, not_claimed
from ncclcheck.checks.majority import HostComparison, compare, sentence
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.finding import Evidence, Finding, Fix
from ncclcheck.model.snapshot import Snapshot


@check("NC103", "world-size-mismatch", "All processes agree on the size of the job")
def world_size_mismatch(snapshot: Snapshot) -> Iterator[Answer]:
    """Every process has the same number of nodes and of processes, and no node has two contradicting sizes.

    ## Why it matters
    A process that expects 4 nodes where the others expect 3 waits for one that never joins, and the others reject or
    ignore its rank. Under a launcher, a contradicting flag splits the job in two.

    ## How to fix
    Give the same `--nnodes` on every node. Under torchrun, Slurm or mpirun leave it out: the launcher knows.

    ## Source
    torch.distributed, `env://` initialization: WORLD_SIZE is the same for every process.
    """
    seen = claims(snapshot)
    nodes = compare((claim.host, claim.launch.nnodes) for claim in seen)
    worlds = compare((claim.host, claim.launch.world_size) for claim in seen)
    if nodes.differs:
        yield _finding("nodes", "nnodes", nodes, seen)
    elif worlds.differs:
        yield _finding("processes", "world size", worlds, seen)
    yield from _unexpected(snapshot)
    yield from _contradictions(seen)
    yield from not_claimed(snapshot)


def _finding(what: str, subject: str, sizes: HostComparison[int], seen: Sequence[Claim]) -> Finding:
    usual = "the same everywhere" if sizes.usual is None else str(sizes.usual.value)
    hosts = tuple(dict.fromkeys(sizes.odd_hosts))
    return Finding(
        "error",
        f"the number of {what} differs: {sentence(sizes)}: some nodes wait for nodes that the "
        "others do not expect",
        hosts,
        tuple(
            Evidence(
                (claim.host,), subject, str(_size(claim, subject)), usual, f"launch: {claim.launch.source}"
            )
            for claim in seen
        ),
        (Fix(f"start {named(hosts)} with the same number of {what} as the others"),),
    )


def _unexpected(snapshot: Snapshot) -> Iterator[Finding]:
    expected, size = snapshot.expected_nodes, snapshot.job_size
    if expected is not None and size and size != expected:
        hosts = tuple(node.host for node in snapshot.nodes)
        yield Finding(
            "error",
            f"the job has {size} {'node' if size == 1 else 'nodes'} but {expected} are required",
            hosts,
            (Evidence(hosts, "nodes", str(size), str(expected), "nodes of the --expect policy"),),
            (Fix("start the job on as many nodes as the policy says, or correct the policy"),),
        )


def _size(claim: Claim, subject: str) -> int:
    return claim.launch.nnodes if subject == "nnodes" else claim.launch.world_size


def _contradictions(seen: Sequence[Claim]) -> Iterator[Finding]:
    hosts_by_values: dict[tuple[str, tuple[tuple[str, str], ...]], list[str]] = {}
    for claim in seen:
        for contradiction in claim.launch.contradictions:
            hosts_by_values.setdefault(
                (contradiction.quantity, tuple(contradiction.said.items())), []
            ).append(claim.host)
    for (quantity, values), found_on in hosts_by_values.items():
        hosts = tuple(dict.fromkeys(found_on))
        versus = ", but ".join(f"{source} says {value}" for source, value in values)
        yield Finding(
            "error",
            f"two sources contradict each other about {quantity} on {named(hosts)}: {versus}",
            hosts,
            tuple(Evidence(hosts, quantity, value, "one value", source) for source, value in values),
            (Fix(f"remove the one that is wrong; under a launcher, leave out the flag for {quantity}"),),
        )
