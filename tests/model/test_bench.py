"""Failures of ranks."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.model.bench import LEFT_EARLY, RankFailure


def test_a_rank_whose_node_was_interrupted_is_told_from_one_that_was_lost() -> None:
    left = RankFailure(1, "node02", "lost", "all_reduce 1M", LEFT_EARLY, 0.0)
    assert left.is_interrupted
    assert not replace(left, detail="no word from it for 5 s").is_interrupted
