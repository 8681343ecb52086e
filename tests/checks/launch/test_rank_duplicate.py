"""NC102 rank-duplicate."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.model.snapshot import Snapshot
from tests.builders import cluster, everywhere
from tests.checks.running import finding, is_silent, run
from tests.fact_builders import GONE, launch


def claimed(*claims: tuple[str, int, int]) -> Snapshot:
    """Processes by host, node rank and local rank, two per node."""
    return replace(
        cluster(2),
        claims=tuple(launch(rank, 2, local_rank=local, local_world_size=2) for _, rank, local in claims),
        claim_hosts=tuple(host for host, _, _ in claims),
    )


def test_every_process_has_its_own_rank() -> None:
    assert is_silent(
        "rank-duplicate", claimed(("node01", 0, 0), ("node01", 0, 1), ("node02", 1, 0), ("node02", 1, 1))
    )


def test_two_nodes_with_one_node_rank_are_both_named() -> None:
    found = finding("rank-duplicate", claimed(("node01", 0, 0), ("node02", 0, 0)))
    assert (found.severity, found.hosts) == ("error", ("node01", "node02"))
    assert "node01 and node02 claim the same node rank 0" in found.summary


def test_a_whole_node_started_twice_is_one_finding() -> None:
    all_twice = claimed(("node01", 0, 0), ("node01", 0, 1), ("node02", 0, 0), ("node02", 0, 1))
    assert finding("rank-duplicate", all_twice).hosts == ("node01", "node02")


def test_two_launches_on_one_host_are_told_as_such() -> None:
    found = finding("rank-duplicate", claimed(("node01", 0, 0), ("node01", 0, 0), ("node02", 1, 0)))
    assert "2 processes on node01" in found.summary


def test_one_global_rank_with_different_places_is_found() -> None:
    snapshot = claimed(("node01", 0, 0), ("node02", 1, 0))
    first, second = snapshot.claims
    found = finding("rank-duplicate", replace(snapshot, claims=(first, replace(second, rank=0))))
    assert "same rank 0" in found.summary


def test_claims_are_taken_from_the_facts_where_none_were_recorded() -> None:
    merged = replace(everywhere(cluster(2), launch=launch(0, 2)), claims=(), claim_hosts=())
    assert finding("rank-duplicate", merged).hosts == ("node01", "node02")


def test_without_claims_and_launch_facts_nothing_is_known() -> None:
    mute = replace(everywhere(cluster(2), launch=GONE), claims=(), claim_hosts=())
    assert run("rank-duplicate", mute).outcome == "unknown"


def test_two_jobs_that_met_at_one_rendezvous_are_not_numbered_by_their_users() -> None:
    three = cluster(3)
    drawn = [
        replace(launch(rank, 2), rendezvous="c10d", rendezvous_id=job)
        for rank, job in ((0, "a"), (1, "a"), (1, "b"))
    ]
    assert run("rank-duplicate", replace(three, claims=tuple(drawn))).findings == ()
    same = tuple(replace(claim, rendezvous_id="a") for claim in drawn)
    assert finding("rank-duplicate", replace(three, claims=same)).hosts == ("node02", "node03")
