"""NC119 rendezvous-id."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.hosts import named
from ncclcheck.checks.launch._claims import Claim, claims, not_claimed
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.finding import Evidence, Finding, Fix, NotApplicable
from ncclcheck.model.snapshot import Snapshot


@check("NC119", "rendezvous-id", "All nodes were started with the same --rdzv-id")
def rendezvous_id(snapshot: Snapshot) -> Iterator[Answer]:
    """Every node's torchrun has the same `--rdzv-id`.

    ## Why it matters
    Nodes with different ids wait for each other in the same store under different keys. Each waits until its timeout
    (10 minutes) and then reports that the rendezvous did not complete. The log names neither the other id nor the node
    that has it.

    ## How to fix
    Give the same `--rdzv-id` on every node: a fixed text, or the id of the job ($SLURM_JOB_ID), never $RANDOM or
    `date` of each node. If the nodes belong to two jobs, give each job its own port in `--rdzv-endpoint`.

    ## Source
    torch/distributed/elastic/rendezvous: c10d_rendezvous_backend.py (the key "torch.rendezvous." + run_id),
    static_tcp_rendezvous.py (PrefixStore of run_id).
    """
    seen = tuple(claim for claim in claims(snapshot) if claim.launch.source == "launch-line")
    if not seen:
        yield NotApplicable("no torchrun follows")
        return
    hosts_of: dict[str, list[Claim]] = {}
    for claim in sorted(seen, key=lambda claim: claim.launch.node_rank):
        hosts_of.setdefault(claim.launch.rendezvous_id, []).append(claim)
    if len(hosts_of) > 1:
        yield _finding(hosts_of)
    yield from not_claimed(snapshot)


def _finding(claims_of: dict[str, list[Claim]]) -> Finding:
    """Return the error about all ids but that of node 0, which is first in `claims_of`."""
    (first_id, first_claims), *differing = claims_of.items()
    who = ", ".join(f"{named(_hosts(some))} came with --rdzv-id {number}" for number, some in differing)
    hosts = tuple(host for _, some in differing for host in _hosts(some))
    return Finding(
        "error",
        f"{who}, {named(_hosts(first_claims))} with {first_id}: nodes with different ids never meet, and each would "
        "wait until its timeout",
        hosts,
        tuple(
            Evidence((claim.host,), "--rdzv-id", number, first_id, "the command line after '--'")
            for number, some in claims_of.items()
            for claim in some
        ),
        (Fix(f"start torchrun on {named(hosts)} with --rdzv-id={first_id}, or give each job its own port"),),
    )


def _hosts(some: list[Claim]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(claim.host for claim in some))
