"""NC103 world-size-mismatch."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.model.launch import Contradiction, Launch
from ncclcheck.model.snapshot import Snapshot
from tests.builders import cluster, everywhere
from tests.checks.running import finding, is_silent, run
from tests.fact_builders import GONE, launch


def with_last_claim(claim: Launch) -> Snapshot:
    healthy = cluster(4)
    return replace(healthy, claims=(*healthy.claims[:3], claim))


def test_all_agree() -> None:
    assert is_silent("world-size-mismatch", cluster(4))


def test_the_one_that_differs_is_named_with_value_and_source() -> None:
    found = finding("world-size-mismatch", with_last_claim(launch(3, 5)))
    assert (found.severity, found.hosts) == ("error", ("node04",))
    assert "5 on node04, 4 on node01, node02 and node03" in found.summary
    assert found.evidence[-1].source == "launch: flags"


def test_a_tie_is_said_to_be_one() -> None:
    two = cluster(2)
    found = finding("world-size-mismatch", replace(two, claims=(two.claims[0], launch(1, 3))))
    assert found.hosts == ("node01", "node02")
    assert "no majority" in found.summary


def test_different_numbers_of_processes_on_equal_nodes_are_found() -> None:
    found = finding("world-size-mismatch", with_last_claim(replace(launch(3, 4), world_size=8)))
    assert found.hosts == ("node04",)
    assert "number of processes" in found.summary


def test_two_sources_on_one_node_are_both_named() -> None:
    said = Contradiction("nnodes", {"--nnodes": "4", "Slurm (SLURM_NNODES)": "3"})
    found = finding("world-size-mismatch", with_last_claim(replace(launch(3, 4), contradictions=(said,))))
    assert found.hosts == ("node04",)
    assert "--nnodes says 4, but Slurm (SLURM_NNODES) says 3" in found.summary


def test_without_claims_and_launch_facts_nothing_is_known() -> None:
    mute = replace(everywhere(cluster(2), launch=GONE), claims=(), claim_hosts=())
    assert run("world-size-mismatch", mute).outcome == "unknown"


def test_another_number_of_nodes_than_the_policy_demands_is_an_error() -> None:
    found = finding("world-size-mismatch", replace(cluster(3), expected_nodes=4))
    assert (found.severity, found.summary) == ("error", "the job has 3 nodes but 4 are required")
    assert is_silent("world-size-mismatch", replace(cluster(4), expected_nodes=4))
