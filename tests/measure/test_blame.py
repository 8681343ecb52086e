"""Which ranks keep the others waiting."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from ncclcheck.measure.blame import are_distinguishable, slow_cores, slow_links, slow_ranks
from ncclcheck.measure.links.pairing import rounds_of_pairs
from ncclcheck.model.bench import CoreSpeed, LinkSpeed, Point
from tests.bench_builders import bench_point


def blamed(*late_us: tuple[float, ...], time_us: float = 1000.0) -> list[int]:
    """The ranks blamed for points with those latenesses."""
    points = [bench_point(1 << (20 + number), late, time_us) for number, late in enumerate(late_us)]
    return [slow.rank for slow in slow_ranks(points)]


def test_nobody_is_blamed_where_all_come_together() -> None:
    assert blamed((3.0, 0.0, 5.0, 2.0), (0.0, 4.0, 1.0, 3.0)) == []


def test_the_one_that_is_far_outside_is_blamed() -> None:
    assert blamed((3.0, 0.0, 500.0, 2.0), (0.0, 4.0, 450.0, 3.0)) == [2]


def test_two_slow_ones_do_not_hide_each_other_and_the_worst_comes_first() -> None:
    assert blamed((3.0, 400.0, 0.0, 700.0)) == [3, 1]


def test_on_gpus_nobody_is_late_since_all_calls_are_enqueued_before_the_first_begins() -> None:
    point = bench_point(1 << 20, (3.0, 700.0, 4.0, 2.0))
    assert [slow.rank for slow in slow_ranks([point])] == [1]
    on_gpus = replace(point, ranks=tuple(replace(time, clock_mhz=1980.0) for time in point.ranks))
    assert not slow_ranks([on_gpus])


def test_a_small_part_of_the_iteration_is_not_worth_a_word() -> None:
    assert blamed((0.0, 1.0, 2.0, 190.0)) == []


def test_a_few_microseconds_are_the_algorithms_own() -> None:
    assert blamed((0.0, 1.0, 2.0, 60.0), time_us=100.0) == []


def test_one_bad_point_of_several_is_noise() -> None:
    assert blamed((0.0, 1.0, 900.0, 2.0), (1.0, 0.0, 4.0, 2.0), (2.0, 1.0, 3.0, 0.0)) == []


def test_where_all_scatter_widely_nobody_is_outside() -> None:
    assert blamed((100.0, 300.0, 500.0, 650.0)) == []


@pytest.mark.parametrize(
    ("late", "expected"), [((0.0, 400.0), [1]), ((150.0, 400.0), []), ((0.0, 150.0), [])]
)
def test_of_two_ranks_one_must_be_five_times_the_other(
    late: tuple[float, float], expected: list[int]
) -> None:
    assert blamed(late) == expected


def test_one_rank_has_nobody_to_be_compared_with() -> None:
    assert blamed((900.0,)) == []
    assert slow_ranks([]) == ()


def test_healthy_noise_seldom_names_anybody() -> None:
    # Lateness that is as likely for every rank: a tenth of the iteration on average, over ten points.
    source = random.Random(1)  # noqa: S311 - noise, no secret
    rounds = [[tuple(source.expovariate(1 / 100.0) for _ in range(8)) for _ in range(10)] for _ in range(200)]
    assert sum(bool(blamed(*points)) for points in rounds) <= 2


def test_the_figures_say_how_late() -> None:
    (slow,) = slow_ranks(
        [bench_point(1 << 20, (10.0, 20.0, 500.0)), bench_point(1 << 21, (10.0, 20.0, 700.0))]
    )
    assert (slow.rank, slow.host, slow.late_us, slow.points) == (2, "node03", 600.0, 2)
    assert slow.late_share == pytest.approx(0.6)
    assert slow.others_share == pytest.approx(0.015)


def point(size_bytes: int = 1 << 20, **us: tuple[float, ...]) -> Point:
    """A point of 1000 us per iteration in which the ranks have these `stalled_us` or `waited_us`."""
    (count,) = {len(values) for values in us.values()}
    bare = bench_point(size_bytes, (0.0,) * count)
    ranks = [replace(time, **{name: values[time.rank] for name, values in us.items()}) for time in bare.ranks]
    return replace(bare, ranks=tuple(ranks))


def found(*points: Point) -> list[tuple[int, str]]:
    return [(slow.rank, slow.how) for slow in slow_ranks(points)]


def test_who_stands_still_for_a_twentieth_of_the_time_is_blamed() -> None:
    assert found(point(stalled_us=(2.0, 0.0, 120.0, 1.0))) == [(2, "stalled")]
    assert found(point(stalled_us=(2.0, 0.0, 40.0, 1.0))) == []
    assert found(point(stalled_us=(120.0, 0.0))) == [(0, "stalled")]


def test_on_gpus_who_stands_still_is_blamed_only_if_it_lacks_a_core_afterwards() -> None:
    """Its calls are enqueued; on a busy machine it is chance which process stands still while it waits for its GPU."""
    still = point(stalled_us=(2.0, 0.0, 340.0, 1.0))
    on_gpus = replace(still, ranks=tuple(replace(time, clock_mhz=1980.0) for time in still.ranks))

    def named(*shares: float, claim: int = 0) -> list[int]:
        cores = [
            CoreSpeed(rank, f"node0{rank + 1}", 25e3 / share, 25e3, claim, share)
            for rank, share in enumerate(shares)
        ]
        return [slow.rank for slow in slow_ranks([on_gpus], cores)]

    assert named() == []
    assert named(1.0, 1.0, 1.0, 1.0) == []
    assert named(1.0, 1.0, 0.4, 1.0) == [2]
    assert named(0.5, 0.5, 0.4, 0.5, claim=7) == []


def test_who_has_to_share_its_core_is_blamed_and_those_that_all_share_are_not() -> None:
    assert found(
        point(waited_us=(210.0, 230.0, 260.0, 880.0)), point(waited_us=(90.0, 110.0, 120.0, 950.0))
    ) == [(3, "crowded")]
    assert found(point(waited_us=(10.0, 12.0, 9.0, 260.0))) == [(3, "crowded")]
    assert (
        found(point(waited_us=(710.0, 380.0, 420.0, 420.0)), point(waited_us=(510.0, 430.0, 530.0, 580.0)))
        == []
    )
    assert found(point(waited_us=(250.0, 600.0))) == []


def test_who_shared_its_core_only_for_a_while_is_not_blamed() -> None:
    crowded = point(waited_us=(210.0, 230.0, 260.0, 880.0))
    assert slow_ranks([crowded], cores(25.0, 25.0, 25.0, 26.0)) == ()
    (slow,) = slow_ranks([crowded], cores(40.0, 40.0, 41.0, 42.0))
    assert (slow.rank, slow.how) == (3, "crowded")


def test_of_ranks_that_the_kernel_schedules_alike_it_is_chance_which_one_waits() -> None:
    crowded = point(waited_us=(210.0, 230.0, 260.0, 880.0))
    busy = cores(40.0, 40.0, 41.0, 42.0)
    assert slow_ranks([crowded], [replace(speed, claim=7) for speed in busy]) == ()
    pinned = [replace(speed, claim=8 if speed.rank == 3 else 7) for speed in busy]
    assert [slow.rank for slow in slow_ranks([crowded], pinned)] == [3]
    both = point(waited_us=(20.0, 30.0, 10.0, 15.0, 900.0, 950.0))
    of_one_node = [
        replace(core, claim=1 + core.rank // 4) for core in cores(25.0, 25.0, 25.0, 25.0, 60.0, 61.0)
    ]
    assert {slow.rank for slow in slow_ranks([both], of_one_node)} == {4, 5}
    alike = [replace(core, claim=7) for core in cores(25.0, 26.0, 54.0, 25.5)]
    assert slow_cores(alike) == ()


def cores(*work_ms: float, core_ms: float = 25.0) -> list[CoreSpeed]:
    return [
        CoreSpeed(rank, f"node0{rank + 1}", 1000 * ms, 1000 * min(ms, core_ms))
        for rank, ms in enumerate(work_ms)
    ]


def test_the_rank_that_takes_longer_for_the_same_work_is_blamed() -> None:
    (slow,) = slow_cores(cores(25.0, 26.0, 54.0, 25.5))
    assert (slow.rank, slow.host, slow.shared) == (2, "node03", True)
    (slower,) = slow_cores(cores(25.0, 26.0, 54.0, core_ms=99.0))
    assert not slower.shared
    assert slow_cores(cores(40.0, 24.0, 36.0, 44.0, 63.0)) == ()
    assert [slow.rank for slow in slow_cores(cores(25.0, 51.0))] == [1]
    assert slow_cores(cores(25.0, 36.0)) == slow_cores(cores(25.0)) == slow_cores([]) == ()
    of_two = [CoreSpeed(0, "node01", 25e3, 25e3), CoreSpeed(1, "node02", 45e3, 45e3)]
    assert slow_cores(of_two) == ()


def test_of_two_ranks_the_one_that_has_half_a_core_is_blamed_by_its_own_clocks() -> None:
    (slow,) = slow_cores(cores(25.0, 44.0))
    assert (slow.rank, slow.shared) == (1, True)
    assert slow_cores(cores(36.0, 90.0)) == ()
    assert [slow.rank for slow in slow_cores(cores(36.0, 120.0))] == [1]


def test_a_little_noise_of_the_others_hides_nobody() -> None:
    assert [slow.rank for slow in slow_cores(cores(30.2, 24.4, 44.5))] == [2]


def test_cores_are_told_apart_where_nobody_but_the_slow_one_had_to_share() -> None:
    assert are_distinguishable(cores(25.0, 26.0, 30.0))
    assert are_distinguishable(cores(25.0, 26.0, 47.0))
    assert not are_distinguishable(cores(25.0, 33.0, 47.0))
    assert not are_distinguishable(cores(60.0, 60.0, 60.0))
    assert are_distinguishable(cores(60.0))


def links(count: int, gb_s: Callable[[int, int], float], cpu_share: float = 0.1) -> list[LinkSpeed]:
    """What pairs of so many nodes measure."""
    return [
        LinkSpeed(one, f"node0{one + 1}", other, f"node0{other + 1}", gb_s(one, other), cpu_share)
        for pairs in rounds_of_pairs(count)
        for one, other in pairs
    ]


def test_a_slow_link_is_told_by_node_and_direction() -> None:
    ends, pairs = slow_links(links(4, lambda one, _: 0.012 if one == 2 else 0.12))
    assert [(end.host, end.end) for end in ends] == [("node03", "sender")]
    assert pairs == ()
    ends, _ = slow_links(links(3, lambda one, other: 0.012 if 0 in (one, other) else 0.12))
    assert {(end.host, end.end) for end in ends} == {("node01", "sender"), ("node01", "receiver")}


def test_a_slow_way_between_two_fast_nodes_is_told_from_a_slow_node() -> None:
    ends, pairs = slow_links(links(4, lambda one, other: 0.012 if (one, other) == (1, 2) else 0.12))
    assert ends == ()
    assert [pair.pair for pair in pairs] == [("node02", "node03")]


def test_of_two_nodes_only_the_direction_is_known() -> None:
    ends, pairs = slow_links(links(2, lambda one, _: 0.012 if one == 1 else 0.12))
    assert (ends, [pair.pair for pair in pairs]) == ((), [("node02", "node01")])
    assert slow_links(links(2, lambda one, _: 0.08 if one == 1 else 0.12)) == ((), ())


def test_what_the_cpu_limited_is_no_slow_link() -> None:
    assert slow_links(links(4, lambda one, _: 0.2 if one == 2 else 1.5, cpu_share=0.9)) == ((), ())
    assert slow_links(links(2, lambda one, _: 0.2 if one == 1 else 1.5, cpu_share=0.9)) == ((), ())
    assert slow_links([]) == ((), ())


def test_a_core_whose_speed_changes_is_not_taken_for_one_that_is_shared() -> None:
    """The least time by the clock and the least of the core are of different tries: seen where the host was busy."""
    seen = (
        CoreSpeed(0, "node01", 49.3e3, 39.1e3, 1, 0.97),
        CoreSpeed(1, "node02", 38.6e3, 32.0e3, 1, 0.96),
        CoreSpeed(2, "node03", 66.6e3, 32.9e3, 2, 0.48),
    )
    (slow,) = slow_cores(seen)
    assert (slow.rank, slow.shared, slow.core_share) == (2, True, 0.48)
    assert are_distinguishable(seen)
    assert not are_distinguishable([replace(speed, core_share=0.0) for speed in seen])


def test_rank_without_a_core_is_named_beside_a_slightly_slow_one() -> None:
    shares = (0.79, 0.82, 0.49)  # 1.26, 1.22 and 2.04 times the time of the core
    cores = [
        CoreSpeed(rank, f"node0{rank}", 30e3 / share, 30e3, 1 + rank // 2, share)
        for rank, share in enumerate(shares)
    ]
    assert [slow.rank for slow in slow_cores(cores)] == [2]


def test_a_clock_of_the_core_that_did_not_move_is_no_crash() -> None:
    stuck = [CoreSpeed(rank, f"node0{rank + 1}", 25e3, 0.0 if rank == 1 else 25e3) for rank in range(3)]
    assert [slow.rank for slow in slow_cores(stuck)] == [1]


def test_eight_thousand_ranks_are_judged_in_no_time() -> None:
    noise = random.Random(5)  # noqa: S311 - noise, no secret
    late = [noise.uniform(150.0, 450.0) for _ in range(8000)]  # so that no rank is set aside at first sight
    late[4711] = 2500.0
    points = [bench_point(1 << (20 + number), tuple(late), 1000.0) for number in range(3)]
    works = [CoreSpeed(rank, "node01", 25e3, 25e3, claim=1 + rank // 8) for rank in range(8000)]
    works[815] = replace(works[815], work_us=90e3, core_us=90e3)
    started = time.process_time()
    assert [slow.rank for slow in slow_ranks(points, works)] == [4711]
    assert [slow.rank for slow in slow_cores(works)] == [815]
    assert time.process_time() - started < 2.0
