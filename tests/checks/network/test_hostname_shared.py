"""NC223 hostname-shared."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.model.snapshot import Snapshot
from tests.builders import cluster, with_silent
from tests.checks.running import finding, is_silent, run


def sharing(count: int = 4) -> Snapshot:
    """The second and the third node call themselves node."""
    seen = cluster(count)
    nodes = tuple(
        replace(node, host=f"node#{node.node_rank}") if node.node_rank in (1, 2) else node
        for node in seen.nodes
    )
    return replace(seen, nodes=nodes)


def test_names_of_their_own_are_fine() -> None:
    assert is_silent("hostname-shared", cluster(4))


def test_nodes_with_one_name_are_told_apart_by_address_and_rank() -> None:
    found = finding("hostname-shared", sharing())
    assert (found.severity, found.hosts) == ("warning", ("node#1", "node#2"))
    assert found.summary == (
        "2 nodes call themselves node: node#1 is 10.0.0.2 (node rank 1), node#2 is 10.0.0.3 (node rank 2)"
    )


def test_one_node_has_nobody_to_share_with_and_a_silent_one_is_unknown() -> None:
    assert run("hostname-shared", cluster(1)).outcome == "not_applicable"
    assert run("hostname-shared", with_silent(cluster(4), "node04")).outcome == "unknown"


def test_a_name_that_only_looks_like_it_is_nobodys_namesake() -> None:
    seen = cluster(3)
    nodes = (replace(seen.nodes[0], host="rack#0"), *seen.nodes[1:])
    assert is_silent("hostname-shared", replace(seen, nodes=nodes))
