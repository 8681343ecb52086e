"""The schedule: bounded however large the job, no interface used twice in one direction, everybody in enough rounds."""

from __future__ import annotations

from collections import Counter

import pytest

from ncclcheck import timeouts
from ncclcheck.measure.links.rounds import STREAMS, plan_rounds

ANSWERS_S = 1.0


@pytest.mark.parametrize("networks", [1, 2, 4, 8, 17, 25, 40, 1000])
@pytest.mark.parametrize("nodes", [2, 3, 4, 8, 64, 65, 1024, 10_000])
def test_all_of_it_takes_at_most_ten_seconds(nodes: int, networks: int) -> None:
    plan = plan_rounds(nodes, networks)
    healthy_s = plan.rounds * (plan.pings_s + plan.round_s)
    assert healthy_s + 2 * ANSWERS_S <= timeouts.LINKS_TOTAL_S
    assert (
        plan.latency_s + plan.bandwidth_s + ANSWERS_S <= timeouts.LINKS_TOTAL_S + 0.5
    )  # with a node that stops at the worst time
    assert 1 <= plan.networks <= networks
    assert plan.window_s >= 0.05
    assert plan.warm_up_s >= 0.03


@pytest.mark.parametrize("nodes", [4, 64, 10_000])
def test_few_networks_are_measured_without_haste(nodes: int) -> None:
    for networks in range(1, 9):
        plan = plan_rounds(nodes, networks)
        assert plan.networks == networks
        assert (plan.warm_up_s, plan.window_s) == pytest.approx(
            (timeouts.LINKS_WARM_UP_S, timeouts.LINKS_WINDOW_S)
        )
    assert plan_rounds(4, 1).rounds * plan_rounds(4, 1).round_s < 0.6


def test_the_number_of_rounds_does_not_grow_with_the_nodes() -> None:
    assert len({plan_rounds(nodes, 2).rounds for nodes in (4, 8, 64, 100, 10_000)}) == 1


@pytest.mark.parametrize("nodes", [2, 3, 4, 5, 6, 7, 64, 101])
def test_every_node_sends_to_one_and_receives_from_one_in_each_round(nodes: int) -> None:
    shifts = plan_rounds(nodes, 1).shifts
    partners: dict[int, list[int]] = {node: [] for node in range(nodes)}
    for shift in shifts:
        targets = Counter((node + shift) % nodes for node in range(nodes))
        assert set(targets.values()) == {1}
        for node in range(nodes):
            assert (node + shift) % nodes != node
            partners[node].append((node + shift) % nodes)
    assert len(shifts) >= 2
    if nodes >= 3:
        assert all(len(set(targets)) == len(shifts) for targets in partners.values())


def test_of_many_nodes_one_partner_is_in_the_other_half() -> None:
    assert 32 in plan_rounds(64, 1).shifts


def test_a_later_round_may_start_later_but_the_patience_is_spent_once() -> None:
    plan = plan_rounds(64, 8)
    starts = [plan.latest_start_s(number) for number in range(plan.rounds)]
    assert starts == sorted(starts)
    lost = [start - number * plan.round_s for number, start in enumerate(starts)]
    assert max(lost) - min(lost) < 1.0
    assert STREAMS > 1
