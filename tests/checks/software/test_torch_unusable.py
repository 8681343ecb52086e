"""NC504: a node whose torch cannot be imported is named."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.checks.registry import all_checks, run_check
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import FOLDER_GONE, MasterPath
from ncclcheck.model.snapshot import Node, Snapshot
from tests.builders import cluster

CHECK = next(check for check in all_checks() if check.slug == "torch-unusable")


def with_master(snapshot: Snapshot, index: int, master: MasterPath | Missing) -> Snapshot:
    nodes = list(snapshot.nodes)
    nodes[index] = Node(nodes[index].host, nodes[index].node_rank, replace(nodes[index].facts, master=master))
    return replace(snapshot, nodes=tuple(nodes))


def test_healthy_nodes_pass() -> None:
    assert run_check(CHECK, cluster(2)).outcome == "passed"


def test_the_node_and_the_reason_are_named() -> None:
    healthy = cluster(2)
    master = healthy.nodes[1].facts.master
    assert not isinstance(master, Missing)
    broken = replace(master, outcome="torch-broken", detail="ImportError: libcudart.so.13")
    (finding,) = run_check(CHECK, with_master(healthy, 1, broken)).findings
    assert finding.hosts == (healthy.nodes[1].host,)
    assert "libcudart.so.13" in finding.summary


def test_a_node_whose_way_is_unknown_is_not_passed() -> None:
    assert run_check(CHECK, with_master(cluster(2), 0, Missing("timeout"))).outcome == "unknown"


def test_where_the_folder_of_the_job_is_gone_nothing_is_to_be_repaired_in_torch() -> None:
    healthy = cluster(2)
    master = healthy.nodes[1].facts.master
    assert not isinstance(master, Missing)
    broken = replace(
        master, outcome="torch-broken", detail=f"Cannot load libtorch_cpu.so (exit 2); {FOLDER_GONE}"
    )
    (finding,) = run_check(CHECK, with_master(healthy, 1, broken)).findings
    assert "start the job in a folder that exists" in finding.fixes[0].text
