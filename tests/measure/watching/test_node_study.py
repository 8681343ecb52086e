"""What a node tells node 0 of its ranks."""

from __future__ import annotations

from ncclcheck.measure.watching.node_study import Studied, node_study
from ncclcheck.model.codec import decode, encode
from ncclcheck.model.job.together import MOST_STACKS, NodeStudy
from ncclcheck.model.job.watched import Frame, Look, RankLook
from tests.measure.watching.test_stacks import ALL_REDUCE, LOADER


def _look(at_s: float, *cpu_s: float) -> Look:
    return Look(at_s, tuple(RankLook(rank, 100 + rank, "S", cpu, 7, 7) for rank, cpu in enumerate(cpu_s)))


def test_each_rank_is_told_in_a_few_words_and_equal_stacks_once() -> None:
    stacks = {100: ALL_REDUCE, 101: LOADER, 102: ALL_REDUCE}
    study = node_study(Studied("node01", _look(0, 0, 0, 0), _look(10, 0, 9, 0), stacks, stacks, 70.0, 3))
    assert [(rank.rank, rank.inside, rank.computes, rank.moved) for rank in study.ranks] == [
        (0, True, False, False),
        (1, False, True, False),
        (2, True, False, False),
    ]
    assert study.ranks[0].stack == study.ranks[2].stack
    assert len(study.stacks) == 2
    assert decode(encode(study), NodeStudy) == study


def test_a_rank_without_a_stack_says_so_and_one_whose_stack_changed_moved() -> None:
    look = _look(0, 0, 0)
    study = node_study(Studied("node01", look, look, {101: LOADER}, {101: ALL_REDUCE}, 70.0))
    assert [(rank.stack == "", rank.moved) for rank in study.ranks] == [(True, False), (False, True)]


def test_of_very_many_different_stacks_only_some_are_sent() -> None:
    count = MOST_STACKS + 8
    stacks = {100 + number: (Frame("/home/me/train.py", number, "step"),) for number in range(count)}
    look = _look(0, *([0.0] * count))
    study = node_study(Studied("node01", look, look, stacks, stacks, 70.0))
    assert len(study.stacks) == MOST_STACKS
    assert len({rank.stack for rank in study.ranks}) == count
