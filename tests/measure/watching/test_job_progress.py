"""Whether a job advances, for how long it stands still, and how long it may."""

from __future__ import annotations

import pytest

from ncclcheck.measure.watching.job_progress import (
    Pace,
    Signs,
    first_pace,
    next_job_pace,
    next_pace,
    overlooked,
    patience_s,
    still_s,
)
from ncclcheck.model.job.watched import Look, RankLook


def _look(at_s: float, *moved: tuple[int, int], network: int = 0) -> Look:
    """A look at ranks, each with its switches and bytes so far."""
    ranks = tuple(
        RankLook(rank, 100 + rank, "S", at_s, switches, io_bytes)
        for rank, (switches, io_bytes) in enumerate(moved)
    )
    return Look(at_s, ranks, network)


def _paced(*looks: Look) -> Pace:
    pace = first_pace(looks[0])
    for look in looks[1:]:
        pace = next_pace(pace, look)
    return pace


def _trained(until_s: int) -> list[Look]:
    """Two ranks that take a step each 10 ms."""
    return [_look(5.0 * i, (500 * i, 10_000_000 * i), (500 * i, 10_000_000 * i)) for i in range(until_s // 5)]


def test_a_job_that_trains_does_not_stand_still() -> None:
    assert still_s(_paced(*_trained(100))) == 0


def test_a_job_of_which_nothing_moves_stands_still_since_its_last_advance() -> None:
    looks = _trained(100)
    last = looks[-1]
    frozen = [Look(last.at_s + 5 * i, last.ranks) for i in range(1, 5)]
    assert still_s(_paced(*looks, *frozen)) == 20


def test_a_job_of_which_nothing_moves_advances_where_nccl_or_its_gpus_tell_so() -> None:
    pace = _paced(*_trained(100))
    frozen = Look(pace.look.at_s + 5, pace.look.ranks)
    assert still_s(next_pace(pace, frozen, works=True)) == 0
    assert next_pace(pace, frozen, works=True).byte_rates == pace.byte_rates


def test_a_rank_that_polls_while_the_others_wait_is_no_advance() -> None:
    looks = _trained(100)
    switches, io_bytes = looks[-1].ranks[0].switches, looks[-1].ranks[0].io_bytes
    frozen = [_look(95 + 5.0 * i, (switches, io_bytes), (switches + 500 * i, io_bytes)) for i in range(1, 5)]
    assert still_s(_paced(*looks, *frozen)) == 20


def test_a_rank_that_writes_while_the_others_wait_is_an_advance() -> None:
    looks = _trained(100)
    switches, io_bytes = looks[-1].ranks[0].switches, looks[-1].ranks[0].io_bytes
    saving = [
        _look(95 + 5.0 * i, (switches, io_bytes + 500_000_000 * i), (switches, io_bytes)) for i in range(1, 5)
    ]
    assert still_s(_paced(*looks, *saving)) == 0


def test_what_other_programs_of_the_host_send_is_no_advance() -> None:
    looks = _trained(100)
    last = looks[-1]
    frozen = [Look(last.at_s + 5 * i, last.ranks, 500_000 * i) for i in range(1, 5)]
    assert still_s(_paced(*looks, *frozen)) == 20
    moving = [Look(last.at_s + 5 * i, last.ranks, 500_000_000 * i) for i in range(1, 5)]
    assert still_s(_paced(*looks, *moving)) == 0


@pytest.mark.parametrize(("pause_s", "patience"), [(10, 60), (40, 200)])
def test_patience_is_five_times_the_longest_pause_that_the_job_recovered_from(
    pause_s: int, patience: float
) -> None:
    looks = _trained(100)
    last = looks[-1]
    paused = [Look(last.at_s + 5 * i, last.ranks) for i in range(1, pause_s // 5 + 1)]
    end = paused[-1].at_s + 5
    moved = _look(end, *((rank.switches + 500, rank.io_bytes + 10_000_000) for rank in last.ranks))
    assert patience_s(_paced(*looks, *paused), 60) == 60  # not recovered yet
    assert patience_s(_paced(*looks, *paused, moved), 60) == patience


def test_the_start_of_a_job_does_not_raise_the_patience() -> None:
    still = [_look(5.0 * i, (0, 0), (0, 0)) for i in range(20)]
    moved = _look(100, (500, 10_000_000), (500, 10_000_000))
    assert patience_s(_paced(*still, moved), 60) == 60


def test_a_look_while_stacks_are_read_is_no_advance() -> None:
    looks = _trained(50)
    last = looks[-1]
    woken = _look(last.at_s + 1, *((rank.switches + 100, rank.io_bytes) for rank in last.ranks))
    pace = overlooked(_paced(*looks), woken)
    assert still_s(pace) == 1
    assert still_s(next_pace(pace, Look(woken.at_s + 5, woken.ranks))) == 6


@pytest.mark.parametrize(
    ("nodes", "stands_still"),
    [
        ([Signs(moves_bytes=False, wakes=True), Signs(moves_bytes=False, wakes=False)], True),  # one polls
        ([Signs(moves_bytes=False, wakes=True), Signs(moves_bytes=False, wakes=True)], False),
        ([Signs(moves_bytes=True, wakes=False), Signs(moves_bytes=False, wakes=False)], False),  # one saves
        ([], True),
    ],
)
def test_a_job_advances_where_a_node_moves_bytes_or_all_wake_up(
    nodes: list[Signs], stands_still: bool
) -> None:
    pace = next_job_pace(first_pace(Look(0, ())), 5, nodes)
    assert still_s(pace) == (5 if stands_still else 0)
