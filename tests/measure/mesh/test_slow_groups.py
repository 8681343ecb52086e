"""Which groups are named as slow."""

from __future__ import annotations

from ncclcheck.measure.mesh.slow_groups import slow_groups
from ncclcheck.model.benchmarks.mesh_bench import GroupTime


def time(group: int, time_us: float, low_us: float | None = None, nodes: int = 2) -> GroupTime:
    return GroupTime(group, (group, group + 4), ("a", "b")[:nodes], nodes, time_us, low_us, None, 1.0, 0)


def named(*times: GroupTime, on_gpus: bool = True) -> list[int]:
    return [slow.time.group for slow in slow_groups(times, on_gpus=on_gpus).slow]


def test_the_slow_one_is_named_with_what_is_usual() -> None:
    (slow,) = slow_groups([time(0, 1000), time(1, 1300), time(2, 1010), time(3, 990)], on_gpus=True).slow
    assert (slow.time.group, slow.usual_us, slow.compared) == (1, 1000, 3)


def test_of_two_groups_the_slower_one_is_named() -> None:
    assert named(time(0, 2000), time(1, 1000)) == [0]


def test_what_is_within_a_fifth_or_not_sure_is_not_named() -> None:
    assert named(time(0, 1190), time(1, 1000)) == []
    assert named(time(0, 1500, low_us=1100), time(1, 1000)) == []
    assert named(time(0, 300), time(1, 150)) == []  # a busy core takes that


def test_groups_are_compared_with_those_that_span_as_many_nodes() -> None:
    assert named(time(0, 9000), time(1, 9100), time(2, 1000, nodes=1), time(3, 1000, nodes=1)) == []
    assert named(time(0, 9000), time(1, 1000, nodes=1)) == []
    assert slow_groups([time(0, 9000), time(1, 1000, nodes=1)], on_gpus=True).judged == 0


def test_inside_a_node_the_cores_decide_without_gpus() -> None:
    inside = (time(0, 2000, nodes=1), time(1, 1000, nodes=1))
    assert slow_groups(inside, on_gpus=False).judged == 0
    assert slow_groups(inside, on_gpus=True).judged == 2
    assert named(*inside, on_gpus=False) == []
    assert named(*inside, on_gpus=True) == [0]


def test_groups_on_the_same_nodes_are_judged_together_without_gpus() -> None:
    """Of an interface that they share TCP gives one more than the other."""
    unequal = (time(0, 1100), time(1, 1700))
    assert named(*unequal, on_gpus=False) == []
    others = [GroupTime(group, (8, 9), ("c", "d"), 2, 1400.0, None, None, 1.0, 0) for group in (2, 3)]
    assert named(*unequal, *others, on_gpus=False) == []
    assert named(time(0, 2600), time(1, 3200), *others, on_gpus=False) == [1]
