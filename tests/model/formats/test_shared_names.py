"""Names that several nodes have."""

from __future__ import annotations

from ncclcheck.model.formats.shared_names import shared_names


def test_a_name_that_several_nodes_have_is_found_without_the_rank() -> None:
    nodes = [("a", 0), ("node#1", 1), ("node#2", 2)]
    assert shared_names(nodes) == {"node#1": "node", "node#2": "node"}


def test_a_rank_of_another_node_or_a_lone_one_is_part_of_the_name() -> None:
    assert shared_names([("rack#7", 0), ("rack#8", 1), ("c#2", 2)]) == {}
