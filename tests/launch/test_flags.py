"""Flags that place a process by hand are told from flags that do not."""

from __future__ import annotations

import pytest

from ncclcheck.launch.flags import LaunchFlags


@pytest.mark.parametrize(
    "flags",
    [
        LaunchFlags(nnodes=1),
        LaunchFlags(node_rank=0),
        LaunchFlags(master_addr="n1"),
        LaunchFlags(master_port=29500),
    ],
)
def test_a_place_counts_as_given_also_where_it_is_zero_or_one(flags: LaunchFlags) -> None:
    assert flags.any_given


def test_a_count_of_ranks_places_nobody() -> None:
    assert not LaunchFlags().any_given
    assert not LaunchFlags(nproc_per_node=8).any_given
