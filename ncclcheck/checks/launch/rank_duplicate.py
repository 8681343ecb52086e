"""NC102 rank-duplicate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ncclcheck.checks.hosts import named
from ncclcheck.checks.launch._claims import Claim, claims, duplicated_node_ranks, not_claimed
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.finding import Evidence, Finding, Fix
from ncclcheck.model.snapshot import Snapshot


@check("NC102", "rank-duplicate", "No two processes claim the same rank")
def rank_duplicate(snapshot: Snapshot) -> Iterator[Answer]:
    """Every process of the job has a unique rank: no two share a global rank, or a node rank and local rank.

    ## Why it matters
    Two processes with one rank overwrite each other's keys in the store. The job hangs, because another rank
    is then missing, or it connects the wrong peers.

    ## How to fix
    Give every node its own `--node-rank`, 0 to nnodes-1. A copied launch line, a rank exported by a login script, or
    two jobs with the same master address and port are the usual causes.

    ## Source
    torch.distributed, `env://` initialization: ranks are unique from 0 to WORLD_SIZE-1.
    """
    seen = _with_ranks(claims(snapshot))
    by_node = duplicated_node_ranks(seen)
    for node_rank, hosts in by_node.items():
        yield _finding(
            f"node rank {node_rank}", hosts, [claim for claim in seen if claim.launch.node_rank == node_rank]
        )
    reported_hosts = {host for hosts in by_node.values() for host in hosts}
    for rank, hosts in _duplicated_ranks(seen).items():
        if not reported_hosts.issuperset(hosts):
            yield _finding(f"rank {rank}", hosts, [claim for claim in seen if claim.launch.rank == rank])
    yield from not_claimed(snapshot)


def _with_ranks(seen: Sequence[Claim]) -> list[Claim]:
    """Return the claims but those of c10d jobs with several ids: arrival numbers them, and rendezvous-id says why."""
    ids = {claim.launch.rendezvous_id for claim in seen if claim.launch.rendezvous == "c10d"}
    return [claim for claim in seen if claim.launch.rendezvous != "c10d" or len(ids) == 1]


def _duplicated_ranks(seen: Sequence[Claim]) -> dict[int, tuple[str, ...]]:
    # Ranks are comparable only in one world: with different sizes the fault is world-size-mismatch.
    ranks: dict[tuple[int, int], list[str]] = {}
    for claim in seen:
        ranks.setdefault((claim.launch.world_size, claim.launch.rank), []).append(claim.host)
    return {rank: tuple(hosts) for (_, rank), hosts in ranks.items() if len(hosts) > 1}


def _finding(what: str, hosts: tuple[str, ...], processes: list[Claim]) -> Finding:
    different = tuple(dict.fromkeys(hosts))
    who = f"{named(different)} claim"
    if len(different) == 1:
        who = f"{len(hosts)} processes on {different[0]} claim"
    return Finding(
        "error",
        f"{who} the same {what}: the job would hang, since another rank is missing",
        different,
        tuple(
            Evidence(
                (claim.host,),
                "rank in the job",
                f"rank {claim.launch.rank}, node rank {claim.launch.node_rank}, local rank {claim.launch.local_rank}",
                "a unique rank",
                f"launch: {claim.launch.source}",
            )
            for claim in processes
            if claim.host in different
        ),
        (Fix(f"start each of {named(different)} with its own --node-rank (or once only)"),),
    )
