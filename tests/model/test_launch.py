"""Who acts for a node."""

from __future__ import annotations

from tests.fact_builders import launch


def test_the_first_local_rank_is_the_agent_of_its_node() -> None:
    assert launch(1, 2, local_rank=0, local_world_size=8).is_agent
    assert not launch(1, 2, local_rank=3, local_world_size=8).is_agent
