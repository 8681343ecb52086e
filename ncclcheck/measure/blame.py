"""Who spoils the benchmark: ranks that keep the others waiting, and links that are slower than the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Literal, TypeAlias

from msgspec import Struct

from ncclcheck.measure.links.leave_one_out import LeaveOneOut
from ncclcheck.measure.links.outliers import FEWEST_NODES, SlowEnd, SlowPair, slow_ends
from ncclcheck.measure.links.rails import has_rails
from ncclcheck.model.bench import CoreSpeed, LinkSpeed, Point, RankTime

LATE_SHARE = 0.20  # of the iteration time: below it there is little to gain
LATE_US = 100.0  # below it is the staggered exit of the algorithm itself (see measure.lateness)
STALLED_SHARE = 0.05  # standing still has no other cause than the process itself, and healthy ranks hardly do
CROWDED_SHARE = 0.20  # more than the others wait for a core; and more still where these wait, too,
CROWDED_MORE = 0.30  # by this part of what they wait: which rank the kernel lets wait is chance
_CROWDED_FACTOR = 1.6  # times the others' median
CROWDED_WORK = 1.25  # times the time on its core that a rank took for its work by itself, at best
WORK_FACTOR = 1.5  # times the others' time for the same work
WORK_FACTOR_OF_TWO = 2.0
ONE_WAY_FACTOR = 2.0  # of two nodes: one direction against the other
CPU_LIMITED = 0.5  # of the time of a transfer
_OUTLIER = 5.0  # robust standard deviations from the median of the others
_CROWDED_OUTLIER = 3.0  # robust standard deviations; besides the other limits, which bind
_LEAST_SPREAD = 0.03  # of the iteration time; so that five of them are a difference that matters
_LEAST_STALLED_SPREAD = 0.005
_FACTOR = 3.0  # times the others' median
_LEAST_SHARE = 1e-3  # of the time: below it the clock of the core has not moved yet
_FACTOR_OF_TWO = 5.0  # two ranks have no spread to compare with

How: TypeAlias = Literal["late", "stalled", "crowded"]


class SlowRank(Struct, frozen=True):
    """A late rank: how much in a typical point, as time and as a part of the iteration, and the others' part.

    `how`: it enters the calls late, its process stands still at times, or its threads wait for a core.
    """

    rank: int
    host: str
    late_us: float
    late_share: float
    others_share: float
    points: int
    how: How = "late"


class SlowCore(Struct, frozen=True):
    """A rank that takes far longer than the others for the same work, all others asleep.

    `work_us` is by the clock; `core_share` is the part of the time in which it had its core, at best. `shared`: its
    core does the work as fast as the others', but has to do something else as well.
    """

    rank: int
    host: str
    work_us: float
    core_share: float
    others_us: float
    shared: bool


def slow_ranks(points: Sequence[Point], cores: Sequence[CoreSpeed] = ()) -> tuple[SlowRank, ...]:
    """Return the ranks whose lateness, the median over the points, is large and far outside the others'; worst first.

    Large: more than 20 % of the iteration time and 100 us; of the time in which the process itself stood still, 5 %.
    Far outside, from three ranks on: more than 5 robust standard deviations (1.4826 MAD) above the others' median, and
    three times it; of two ranks: five times the other. Waiting for a core is usual where several ranks share a machine:
    there it is 20 % of the iteration more than the others wait, and 30 % of what these do, and 1.6 times it; and the
    rank, tried alone afterwards (`cores`), never had its core for itself, since other load comes and goes. Where others
    that have the same claim on the same cores do not wait as long, it is chance. Each rank is compared with the others
    only, so that two slow ones do not hide each other. On GPUs nobody is late: all calls are enqueued before the first
    one begins, which it does on all ranks together (`blame_gpus` says which GPU is slow). A process that stands still
    meanwhile delays nobody but by NCCL's own threads in it: it is named where it lacked a core afterwards, too.
    """
    free = {core.rank for core in cores if _sharing(core) == 1.0}
    found: dict[int, SlowRank] = {}
    crowded = _slow(points, "crowded", lambda time: time.waited_us, CROWDED_SHARE, _LEAST_SPREAD)
    chance = _by_chance({rank.rank for rank in crowded}, cores)
    on_cpus = [point for point in points if not _is_on_gpus(point)]
    for slow_rank in (
        *_stalled(on_cpus),
        *_slow(on_cpus, "late", lambda time: time.late_us, LATE_SHARE, _LEAST_SPREAD),
        *(rank for rank in crowded if rank.rank not in free | chance),
        *_stalled_without_core(list(filter(_is_on_gpus, points)), cores),
    ):
        found.setdefault(slow_rank.rank, slow_rank)
    return tuple(sorted(found.values(), key=lambda slow: -slow.late_share))


def _is_on_gpus(point: Point) -> bool:
    return any(time.clock_mhz for time in point.ranks)


def _stalled(points: Sequence[Point]) -> list[SlowRank]:
    return _slow(points, "stalled", lambda time: time.stalled_us, STALLED_SHARE, _LEAST_STALLED_SPREAD)


def _stalled_without_core(points: Sequence[Point], cores: Sequence[CoreSpeed]) -> list[SlowRank]:
    """Return those that stood still and had to share their core afterwards, unless that was the kernel's chance."""
    shared = {core.rank for core in cores if _sharing(core) > 1.0}
    stalled = _stalled(points)
    chance = _by_chance({rank.rank for rank in stalled}, cores)
    return [rank for rank in stalled if rank.rank in shared - chance]


def slow_cores(cores: Sequence[CoreSpeed]) -> tuple[SlowCore, ...]:
    """Return the ranks that take 1.5 times as long as the others for the same work, and are far outside their spread.

    Whose core needs no longer than the others' has to share it, and then the time by the clock against the time of the
    core says so by itself: 1.5 times what it is of the others, and three times where two ranks both have to share. A
    slower core shows in the times of the cores; of two ranks it is twice the other's.
    """
    work = LeaveOneOut(speed.work_us for speed in cores)
    core = LeaveOneOut(speed.core_us for speed in cores)
    sharing = LeaveOneOut(map(_sharing, cores))
    beyond = LeaveOneOut(map(_beyond, cores))
    if not len(work):
        return ()
    slower = {
        speed.rank
        for speed in cores
        if speed.core_us
        > (WORK_FACTOR_OF_TWO if len(core) == 1 else WORK_FACTOR) * core.median(speed.core_us)
        and _is_outside(speed.core_us, core)
    }
    shared = {
        speed.rank
        for speed in cores
        if _sharing(speed) > _sharing_factor(speed, sharing) * sharing.median(_sharing(speed))
        and _sharing(speed) - sharing.median(_sharing(speed))
        > _OUTLIER * beyond.spread(_beyond(speed), _LEAST_SPREAD * sharing.median(_sharing(speed)))
    }
    shared -= slower | _by_chance(shared, cores)
    found = [
        SlowCore(
            speed.rank,
            speed.host,
            speed.work_us,
            _core_share(speed),
            work.median(speed.work_us),
            speed.rank in shared,
        )
        for speed in cores
        if speed.rank in slower | shared
    ]
    return tuple(sorted(found, key=lambda slow: -slow.work_us))


def are_distinguishable(cores: Sequence[CoreSpeed]) -> bool:
    """Return whether each rank that is not slow had its core to itself, or is alone: a further try adds nothing."""
    if len(cores) <= 1:
        return True
    slow = {core.rank for core in slow_cores(cores)}
    return all(_sharing(core) == 1.0 for core in cores if core.rank not in slow)


def _sharing(core: CoreSpeed) -> float:
    """Return wall time over core time; 1 up to 1.25, which is a core that the rank had to itself."""
    sharing = 1.0 / max(_core_share(core), _LEAST_SHARE)
    return sharing if sharing > CROWDED_WORK else 1.0


def _beyond(core: CoreSpeed) -> float:
    """Return `_sharing` without its step, so that values just above and just below 1.25 are no wide spread."""
    return max(1.0, _sharing(core) - (CROWDED_WORK - 1.0))


def _core_share(core: CoreSpeed) -> float:
    """Return the best share of a single try: where a core's speed changes, least times are of different tries."""
    return core.core_share or min(1.0, core.core_us / core.work_us)


def _sharing_factor(speed: CoreSpeed, sharing: LeaveOneOut) -> float:
    """Return the factor that counts as slow: of two ranks that both share, the machines may just be busy."""
    both = len(sharing) == 1 and sharing.median(_sharing(speed)) > 1.0
    return _FACTOR if both else WORK_FACTOR


def _is_outside(value: float, others: LeaveOneOut) -> bool:
    middle = others.median(value)
    return value - middle > _OUTLIER * others.spread(value, _LEAST_SPREAD * middle)


def _by_chance(ranks: set[int], cores: Sequence[CoreSpeed]) -> set[int]:
    """Return the ranks that wait for a core while most others with the same claim on it do not."""
    alike = Counter(core.claim for core in cores)
    waiting = Counter(core.claim for core in cores if core.rank in ranks)
    return {
        speed.rank
        for speed in cores
        if speed.rank in ranks
        and speed.claim != 0
        and 2 * (waiting[speed.claim] - 1) < alike[speed.claim] - 1
    }


def slow_links(links: Sequence[LinkSpeed]) -> tuple[tuple[SlowEnd, ...], tuple[SlowPair, ...]]:
    """Return the nodes that send or receive slowly with every partner, and the slow pairs of nodes that do not.

    From three nodes on as `outliers.slow_ends` decides. Of two nodes the slow end is not known, but one direction can
    be compared with the other. What the CPU of its ends limited is never called slow. Nodes with several ranks have
    rails (`links.rails`), and a link inside a node is none of these.
    """
    links = [link for link in links if link.from_host != link.to_host]
    if has_rails(links):
        return (), ()
    values = {(link.from_host, link.to_host): link.gb_s for link in links}
    limited = frozenset((link.from_host, link.to_host) for link in links if link.cpu_share > CPU_LIMITED)
    if len({host for pair in values for host in pair}) >= FEWEST_NODES:
        return slow_ends(values, limited)
    pairs = tuple(
        SlowPair(pair, value, values[pair[::-1]])
        for pair, value in values.items()
        if pair not in limited and ONE_WAY_FACTOR * value < values.get(pair[::-1], 0.0)
    )
    return (), pairs


def _slow(
    points: Sequence[Point],
    how: How,
    of: Callable[[RankTime], float],
    least_share: float,
    least_spread: float,
) -> list[SlowRank]:
    shares_of = _shares(points, of)
    shares = {rank: median(values) for rank, values in shares_of.items()}
    others = LeaveOneOut(shares.values())
    is_far = _is_crowded if how == "crowded" else _is_far_outside
    large = {
        rank
        for rank, share in shares.items()
        if len(others) and share > least_share and is_far(share, others, least_spread)
    }
    times: dict[int, list[RankTime]] = {rank: [] for rank in large}
    for time in (time for point in points for time in point.ranks if time.rank in large):
        times[time.rank].append(time)
    found = []
    for rank, rank_times in times.items():
        late_us = median(map(of, rank_times))
        if late_us > LATE_US:
            share = shares[rank]
            usual = others.median(share)
            found.append(SlowRank(rank, rank_times[0].host, late_us, share, usual, len(shares_of[rank]), how))
    return found


def _shares(points: Sequence[Point], of: Callable[[RankTime], float]) -> Mapping[int, list[float]]:
    """Return what each rank has of that in each point, as a part of the mean iteration."""
    shares: dict[int, list[float]] = {}
    for point in points:
        for time in point.ranks:
            if point.time_us.mean > 0:
                shares.setdefault(time.rank, []).append(of(time) / point.time_us.mean)
    return shares


def _is_far_outside(share: float, others: LeaveOneOut, least_spread: float) -> bool:
    middle = others.median(share)
    if len(others) == 1:
        return share > _FACTOR_OF_TWO * middle
    return share - middle > _OUTLIER * others.spread(share, least_spread) and share > _FACTOR * middle


def _is_crowded(share: float, others: LeaveOneOut, least_spread: float) -> bool:
    middle = others.median(share)
    if len(others) == 1 and share <= _FACTOR * middle:
        return False
    more = share - middle
    return (
        more > CROWDED_SHARE + CROWDED_MORE * middle
        and more > _CROWDED_OUTLIER * others.spread(share, least_spread)
        and share > _CROWDED_FACTOR * middle
    )
