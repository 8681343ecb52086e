"""Rounds of pairs among the blocks of a soak; `test_soak_rank.py` runs them on real ranks."""

from __future__ import annotations

from ncclcheck.bench.soak.pair_blocks import first_ranks


def test_one_rank_of_each_node_takes_part() -> None:
    assert first_ranks(("a", "a", "b", "b", "c")) == (0, 2, 4)
    assert first_ranks(("a", "a")) == (0,)
