"""Which pairs are probed."""

from __future__ import annotations

import pytest

from ncclcheck.measure.links.schedule import plan_pairs


@pytest.mark.parametrize("nodes", [2, 3, 64])
def test_all_pairs_while_that_is_cheap(nodes: int) -> None:
    plan = plan_pairs(nodes)
    assert len(set(plan.pairs)) == len(plan.pairs) == plan.possible == nodes * (nodes - 1)
    assert plan.scheme == "all pairs"


@pytest.mark.parametrize("nodes", [65, 200, 1000])
def test_beyond_that_a_sample_with_everyone_in_it_in_both_directions(nodes: int) -> None:
    plan = plan_pairs(nodes)
    pairs = set(plan.pairs)
    assert len(pairs) < plan.possible / 3
    assert all((other, one) in pairs for one, other in pairs)
    assert all((node, (node + 1) % nodes) in pairs and (0, node) in pairs for node in range(1, nodes))
    assert "sample" in plan.scheme
    assert plan == plan_pairs(nodes)


def test_one_node_has_no_pairs() -> None:
    assert plan_pairs(1).pairs == ()
