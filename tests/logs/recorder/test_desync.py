"""Who is behind, from dumps of all kinds of hangs; the same whatever the order and the names."""

from __future__ import annotations

import random

import pytest

from ncclcheck.logs.recorder.desync import desync, joined
from ncclcheck.logs.recorder.flight_recorder import Dump, read_dump
from ncclcheck.model.events import Log, RankBehind, RankDiffers, RankWaits
from tests.logs.recorder.dumps import as_json, as_pickle, dump, entry, history


def dumps_of(entries: dict[int, list[dict[str, object]]], ranks: int = 4) -> list[Dump]:
    return [
        read_dump(as_pickle(dump(entered, range(ranks))), f"nccl_trace_rank_{rank}")
        for rank, entered in entries.items()
    ]


def behind(dumps: list[Dump]) -> list[tuple[int | None, int, str]]:
    return [
        (rank_behind.place.rank, rank_behind.sequence, rank_behind.how)
        for rank_behind in desync(dumps)
        if isinstance(rank_behind, RankBehind)
    ]


def differing(dumps: list[Dump]) -> list[tuple[int | None, int]]:
    return [
        (differs.place.rank, differs.sequence)
        for differs in desync(dumps)
        if isinstance(differs, RankDiffers)
    ]


def test_one_rank_did_not_enter() -> None:
    dumps = dumps_of({0: history(7), 1: history(7), 2: history(6, waits=False), 3: history(7)})
    assert behind(dumps) == [(2, 7, "not-entered")]
    assert [waits.place.rank for waits in desync(dumps) if isinstance(waits, RankWaits)] == [0, 1, 3]
    (late,) = [rank_behind for rank_behind in desync(dumps) if isinstance(rank_behind, RankBehind)]
    assert late.waiting == (0, 1, 3)
    assert "entered 6 collectives of group 0 (default_pg)" in late.text
    assert "ALLREDUCE of 8 elements (Float)" in late.text
    assert "/home/me/train.py:40 in train" in late.text


@pytest.mark.parametrize("seed", range(8))
def test_the_rank_is_found_in_random_jobs(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311
    size, step, lag = chance.randint(2, 20), chance.randint(2, 300), chance.randint(1, 50)
    late = chance.randrange(size)
    first = {rank: chance.randint(1, max(1, step - 60)) for rank in range(size)}
    entries = {
        rank: history(max(0, step - lag), waits=False, first=first[rank])
        if rank == late
        else history(step, state=chance.choice(["started", "scheduled"]), first=first[rank])
        if lag == 1
        else [
            entry(number, state="completed" if number <= step - lag else "scheduled")
            for number in range(first[rank], step + 1)
        ]
        for rank in range(size)
    }
    order = list(entries)
    chance.shuffle(order)
    dumps = dumps_of({rank: entries[rank] for rank in order}, size)
    assert behind(dumps) == [(late, max(0, step - lag) + 1, "not-entered")]


def test_a_rank_that_never_used_the_group() -> None:
    dumps = dumps_of({0: history(1), 1: [], 2: history(1), 3: history(1)})
    assert behind(dumps) == [(1, 1, "not-entered")]


def test_a_rank_that_waits_itself_is_not_the_root() -> None:
    pair = ("9", "pair")
    config = {
        "0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2, 3]"},
        "9": {"name": "9", "desc": "pair", "ranks": "[2, 3]"},
    }
    entries = {
        0: history(5),
        1: history(5),
        2: [*history(4, waits=False), entry(1, "nccl:broadcast", state="started", group=pair, pg_id=1)],
        3: history(4, waits=False),
    }
    dumps = [
        read_dump(as_pickle(dump(entered, pg_config=config)), f"x_{rank}")
        for rank, entered in entries.items()
    ]
    assert {rank for rank, _, _ in behind(dumps)} == {3}


def test_groups_used_in_different_orders() -> None:
    config = {name: {"name": name, "desc": "", "ranks": "[0, 1]"} for name in ("1", "2")}
    entries = {
        0: [entry(1, state="started", group=("1", ""), pg_id=1)],
        1: [entry(1, state="started", group=("2", ""), pg_id=2)],
    }
    dumps = [
        read_dump(as_json(dump(entered, pg_config=config)), f"x_{rank}.json")
        for rank, entered in entries.items()
    ]
    assert behind(dumps) == []
    assert differing(dumps) == [(0, 1), (1, 1)]


@pytest.mark.parametrize(
    "odd",
    [
        entry(7, "nccl:broadcast", state="started"),
        entry(7, elements=9, state="started"),
        entry(7, dtype="Half", state="scheduled"),
    ],
    ids=["operation", "elements", "dtype"],
)
def test_another_collective_at_the_same_step(odd: dict[str, object]) -> None:
    dumps = dumps_of(
        {0: history(7), 1: [*history(6, waits=False), odd], 2: history(7), 3: history(7)},
    )
    assert differing(dumps) == [(1, 7)]
    (found,) = [differs for differs in desync(dumps) if isinstance(differs, RankDiffers)]
    assert "ranks 0, 2, 3 in ALLREDUCE of 8 elements (Float)" in found.text


@pytest.mark.parametrize("name", ["nccl:gather", "nccl:scatter", "nccl:all_to_all", "nccl:coalesced"])
def test_sizes_that_may_differ(name: str) -> None:
    dumps = dumps_of({rank: [entry(1, name, rank + 1, state="started")] for rank in range(4)})
    assert differing(dumps) == []


def test_a_barrier_is_an_allreduce_and_a_base_variant_its_own() -> None:
    dumps = dumps_of(
        {
            rank: [entry(1, "nccl:all_reduce_barrier" if rank else "nccl:all_reduce", 1, state="started")]
            for rank in range(4)
        }
    )
    assert differing(dumps) == []


def test_what_is_over_on_all_ranks_is_no_mismatch() -> None:
    assert desync(dumps_of({rank: [entry(1, elements=rank + 1)] for rank in range(4)})) == []


def test_a_rank_that_went_on_alone() -> None:
    dumps = dumps_of({0: history(8), **{rank: history(7, waits=False) for rank in (1, 2, 3)}})
    (odd,) = [differs for differs in desync(dumps) if isinstance(differs, RankDiffers)]
    assert (odd.place.rank, odd.sequence, odd.alone) == (0, 8, True)
    assert behind(dumps) == []


def test_a_gpu_that_has_not_begun() -> None:
    dumps = dumps_of({rank: history(5, state="scheduled" if rank == 3 else "started") for rank in range(4)})
    assert behind(dumps) == [(3, 5, "not-started")]


def test_a_rank_without_a_dump() -> None:
    dumps = dumps_of({rank: history(5) for rank in (0, 1, 3)})
    assert behind(dumps) == [(2, 5, "no-dump")]


def test_all_are_in_it() -> None:
    dumps = dumps_of({rank: history(5) for rank in range(4)})
    assert behind(dumps) == []
    assert len([waits for waits in desync(dumps) if isinstance(waits, RankWaits)]) == 4


def test_a_job_whose_collectives_are_all_over() -> None:
    assert desync(dumps_of({rank: history(9 + rank, waits=False) for rank in range(4)})) == []


def test_gloo_tells_no_end() -> None:
    level = {rank: history(5, state="scheduled", name="gloo:all_reduce") for rank in range(4)}
    assert desync(dumps_of(level)) == []
    level[1] = level[1][:-1]
    assert behind(dumps_of(level)) == [(1, 5, "not-entered")]


def test_sends_and_receives_are_not_counted() -> None:
    p2p = [entry(7, "nccl:send 0->1", state="started", p2p=True)]
    dumps = dumps_of(
        {0: [*history(7), *p2p], **{rank: history(7) for rank in (1, 2)}, 3: history(6, waits=False)}
    )
    assert behind(dumps) == [(3, 7, "not-entered")]


def test_groups_of_one_name_and_other_members_are_kept_apart() -> None:
    def dump_of(rank: int, members: str, last: int) -> Dump:
        config = {"g": {"name": "g", "desc": "dp", "ranks": members}}
        entered = [
            entry(n, state="started" if n == last else "completed", group=("g", "dp"))
            for n in range(1, last + 1)
        ]
        return read_dump(as_pickle(dump(entered, pg_config=config)), f"x_{rank}")

    dumps = [
        dump_of(0, "[0, 1]", 5),
        dump_of(1, "[0, 1]", 5),
        dump_of(2, "[2, 3]", 9),
        dump_of(3, "[2, 3]", 9),
    ]
    assert behind(dumps) == []


def test_the_newest_dump_of_a_rank_counts() -> None:
    dumps = dumps_of({0: history(7), 1: history(7), 2: history(7), 3: history(7)})
    old = read_dump(as_pickle(dump(history(3, waits=False))), "old/nccl_trace_rank_2")
    assert behind([old, *dumps]) == []


def test_hosts_come_from_the_log() -> None:
    log = Log((), hosts_of_ranks={2: "node2"})
    dumps = dumps_of({0: history(7), 1: history(7), 2: history(6, waits=False), 3: history(7)})
    late = next(event for event in joined(log, dumps).events if isinstance(event, RankBehind))
    assert (late.place.host, late.place.rank) == ("node2", 2)
    assert joined(log, []) is log
