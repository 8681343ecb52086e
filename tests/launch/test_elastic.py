"""An elastic job: those who came are the job."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.launch.elastic import settled
from ncclcheck.model.snapshot import Snapshot
from tests.builders import cluster, with_silent


def elastic(snapshot: Snapshot, least: int) -> Snapshot:
    return replace(snapshot, claims=tuple(replace(claim, min_nodes=least) for claim in snapshot.claims))


def test_enough_came_so_the_job_is_that_small() -> None:
    seen = elastic(with_silent(cluster(4), "node03"), 2)
    small = settled(seen, seen.claims[0])
    assert (small.silent, small.job_size) == ((), 3)
    assert {claim.nnodes for claim in small.claims} == {3}


def test_a_node_that_said_it_cannot_come_stays_silent() -> None:
    seen = elastic(with_silent(cluster(4), "node03", "filtered"), 2)
    assert [silent.host for silent in settled(seen, seen.claims[0]).silent] == ["node03"]


def test_too_few_came() -> None:
    seen = elastic(with_silent(cluster(4), "node03"), 4)
    assert settled(seen, seen.claims[0]) == seen
    fixed = with_silent(cluster(4), "node03")
    assert settled(fixed, fixed.claims[0]) == fixed
