"""Who comes late to a place that is taken is a clash of claims."""

from __future__ import annotations

from ncclcheck.exchange.messages import SCHEMA, Hello
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.run.steps.late import with_late_claims
from tests.fact_builders import launch


def hello(node_rank: int, host: str, nnodes: int = 3) -> Hello:
    return Hello(SCHEMA, "0.1.0", host, launch(node_rank, nnodes))


def test_who_comes_late_to_a_place_that_is_taken_clashes_with_whom_has_it() -> None:
    three = Snapshot(
        nodes=(), claims=tuple(launch(rank, 3) for rank in (0, 1)), claim_hosts=("node0", "node1")
    )
    seen = with_late_claims(three, (hello(1, "node1"), hello(2, "node2")))
    assert [(claim.node_rank, host) for claim, host in zip(seen.claims, seen.claim_hosts, strict=True)] == [
        (0, "node0"),
        (1, "node1"),
        (1, "node1"),
    ]
