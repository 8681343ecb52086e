"""Whether a setting changed what NCCL runs."""

from __future__ import annotations

import pytest

from ncclcheck.measure.trials.choices import is_unchanged, is_unknown
from ncclcheck.model.benchmarks.trials import CallChoice, Point

TREE = {"NCCL_ALGO": "Tree"}
POINT: Point = ("all_reduce", 1 << 20)


def ran(algorithm: str, protocol: str = "SIMPLE", size_bytes: int = 1 << 20) -> CallChoice:
    return CallChoice("all_reduce", size_bytes, algorithm, protocol, 2)


@pytest.mark.parametrize(
    ("arm", "as_is", "own", "unchanged", "untold"),
    [
        (TREE, (ran("TREE"),), (ran("Tree", "Simple"),), True, False),
        (TREE, (ran("RING"),), (ran("TREE"),), False, False),
        (TREE, (ran("RING", "LL"),), (ran("RING", "SIMPLE"),), False, False),
        (TREE, (), (ran("TREE"),), False, True),
        (TREE, (ran("RING"),), (), False, True),
        (TREE, (ran("RING", size_bytes=8),), (ran("RING", size_bytes=8),), False, True),
        ({**TREE, "NCCL_BUFFSIZE": "8388608"}, (ran("RING"),), (ran("RING"),), False, False),
        ({"NCCL_BUFFSIZE": "8388608"}, (), (), False, False),
    ],
)
def test_only_the_log_of_the_same_call_tells(
    arm: dict[str, str],
    as_is: tuple[CallChoice, ...],
    own: tuple[CallChoice, ...],
    unchanged: bool,
    untold: bool,
) -> None:
    assert is_unchanged(arm, as_is, own, [POINT]) is unchanged
    assert is_unknown(arm, as_is, own, [POINT]) is untold
    assert not is_unchanged(arm, as_is, own, [])
