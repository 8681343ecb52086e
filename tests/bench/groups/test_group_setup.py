"""The data of a group: what another group sends is wrong here."""

from __future__ import annotations

import pytest
import torch

from ncclcheck.bench.data import Tables, difference, fill
from ncclcheck.bench.groups.group_setup import of_group
from ncclcheck.measure.collectives import COLLECTIVES, RankContext

TABLES = Tables(2, "float32")


@pytest.mark.parametrize("group", [1, 2, 17, 8191])
def test_the_parts_of_another_group_are_seen(group: int) -> None:
    own, crossed = (of_group(COLLECTIVES["all_gather"], number) for number in (0, group))
    first, second = torch.zeros(64), torch.zeros(64)
    fill(first, own.sent(RankContext(0, 2)), TABLES, 3)
    fill(second, own.sent(RankContext(1, 2)), TABLES, 3)
    received = torch.cat((first, second))
    assert difference(received, own.expected(RankContext(0, 2)), TABLES, 3) is None
    found = difference(received, crossed.expected(RankContext(0, 2)), TABLES, 3)
    assert found is not None
    assert found.wrong > 100


@pytest.mark.parametrize("group", [0, 5, 300])
def test_the_sum_of_a_group_is_exact_and_no_other(group: int) -> None:
    own, crossed = of_group(COLLECTIVES["all_reduce"], group), of_group(COLLECTIVES["all_reduce"], group + 1)
    total = torch.zeros(4096)
    for rank in (0, 1):
        part = torch.zeros(4096)
        fill(part, own.sent(RankContext(rank, 2)), TABLES, 9)
        total += part
    assert difference(total, own.expected(RankContext(0, 2)), TABLES, 9) is None
    assert difference(total, crossed.expected(RankContext(0, 2)), TABLES, 9) is not None
