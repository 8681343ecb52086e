"""Whether a series that wanders has jumped."""

from __future__ import annotations

import pytest

from ncclcheck.measure.soak.jumps import BLOCKS, has_jumped
from ncclcheck.measure.soak.noise import Noise
from tests.measure.soak.wandering import wandering

ALIKE, ALONE = Noise(1.0, 1.0, 0.9, 0.9), Noise(1.0, 1.0)


@pytest.mark.parametrize("seed", range(10))
def test_a_jump_of_six_deviations_is_seen_where_the_level_wanders(seed: int) -> None:
    series = wandering(8 * BLOCKS, 0.9, seed)
    assert not any(has_jumped(series[:end], ALIKE) for end in range(1, len(series)))
    after = [value + 6 for value in wandering(9 * BLOCKS, 0.9, seed)[8 * BLOCKS :]]
    assert any(has_jumped(series + after[:count], ALIKE) for count in range(6, BLOCKS))


def test_spikes_are_no_jump_though_most_of_the_last_blocks_have_one() -> None:
    series = [0.0] * BLOCKS + [9.0, 30.0, 0.0, 12.0, 40.0, 9.0, 0.0, 20.0]
    assert not any(has_jumped(series[:end], ALONE) for end in range(1, len(series) + 1))


def test_few_blocks_tell_nothing() -> None:
    assert not has_jumped([0.0, 0.0, 0.0, 9.0, 9.0, 9.0], ALONE)
