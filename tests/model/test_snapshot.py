"""Questions to a Snapshot that leave out what was not read."""

from __future__ import annotations

from tests.builders import cluster, with_silent, without


def test_a_section_is_known_only_of_nodes_where_it_was_read() -> None:
    snapshot = without(cluster(3), "node02", "gpus")
    assert [node.host for node, _ in snapshot.known("gpus")] == ["node01", "node03"]


def test_silent_nodes_count_among_the_nodes_of_the_job() -> None:
    assert with_silent(cluster(3), "node03").nnodes == 3
