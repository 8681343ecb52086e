"""A soak as node 0 watches it."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from ncclcheck.bench.culprits import DEADLINES
from ncclcheck.bench.nodes.bench_order import BLOCKS_KEPT, BenchOrder
from ncclcheck.bench.nodes.bench_watch import BenchWatch
from ncclcheck.bench.soak.series_folder import lines_in
from ncclcheck.bench.soak.soak_watch import SoakWatch, sparkline, watch_of
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.store.base import Store
from ncclcheck.model.bench import BenchPlan
from ncclcheck.model.bench_setup import BenchNetwork
from ncclcheck.model.benchmarks.soak import NodeCounts, SoakRequest, SoakTail
from ncclcheck.model.codec import encode
from ncclcheck.model.errors import UsageError
from ncclcheck.model.fact import Missing
from tests.bench.nodes.benches import rank, watched, word
from tests.soak_builders import PLAN, soak_block, soak_start

pytestmark = pytest.mark.slow
SOAK = BenchPlan("gloo", ("all_reduce",), (1 << 10,), "float32", 1, None, 5.0, True, soak=PLAN)
ORDER = BenchOrder(SOAK, 2, ("node01", "node02"), {"11": 0, "12": 1}, {"11": 1, "12": 1}, {}, "n", 30.0)
NETWORK = BenchNetwork("gloo", {"node01": 1, "node02": 1}, {}, {}, "a test")


def watching(store: Store, folder: Path) -> BenchWatch:
    request = SoakRequest(folder=str(folder))
    return watch_of(request, watched(store, ORDER, NETWORK, lambda _: None), lambda _: None, DEADLINES)


def test_blocks_go_to_disk_and_into_the_result(store: Store, tmp_path: Path) -> None:
    for number in range(3):
        store.set_document(f"bench/point/{number}", encode(soak_block(number)))
    for ticket, text in (
        (11, word(rank(0, phase="done"), points=3)),
        (12, word(rank(1, phase="done"))),
    ):
        store.set(f"bench/state/{ticket}", text)
    result = watching(store, tmp_path).until(Deadline(30))
    assert result.soak is not None
    assert (result.soak.blocks, result.soak.is_finished, result.points) == (3, True, ())
    judge = lines_in(str(tmp_path))
    assert not isinstance(judge, Missing)
    assert judge.result().events == result.soak.events
    assert judge.result().blocks == 3


def test_a_lost_rank_ends_the_series_with_its_name(store: Store, tmp_path: Path) -> None:
    store.set("bench/state/11", word(rank(0, phase="measuring", inside=True)))
    store.set("bench/state/12", word(rank(1, phase="measuring", exit_code=-9, stat="")))
    result = watching(store, tmp_path).until(Deadline(30))
    assert [failure.host for failure in result.failures] == ["node02"]
    assert result.soak is not None
    assert [(event.kind, event.hosts) for event in result.soak.events] == [("died", ("node02",))]


def test_how_far_it_is_shows_the_last_blocks(store: Store, tmp_path: Path) -> None:
    watch = watching(store, tmp_path)
    store.set_document("bench/point/0", encode(soak_block(0)))
    store.set("bench/state/11", word(rank(0, phase="measuring"), points=1))
    watch.look()
    standing = watch.standing()
    assert (standing.points, standing.of_points) == (1, 360)
    assert "block 1 ▁ 1 ms, 0 events" in standing.where


def test_a_block_that_was_written_over_is_not_taken_for_another(store: Store, tmp_path: Path) -> None:
    said: list[str] = []
    request = SoakRequest(folder=str(tmp_path))
    watch = watch_of(request, watched(store, ORDER, NETWORK, said.append), lambda _: None, DEADLINES)
    store.set_document("bench/point/0", encode(soak_block(BLOCKS_KEPT)))
    store.set("bench/state/11", word(rank(0, phase="measuring"), points=1))
    watch.look()
    assert "blocks of the soak came too fast to be read" in said
    soak = watch.result(()).soak
    assert soak is not None
    assert soak.blocks == 0


def test_each_event_is_said_once(store: Store, tmp_path: Path) -> None:
    said: list[str] = []
    request = SoakRequest(folder=str(tmp_path))
    watch = watch_of(request, watched(store, ORDER, NETWORK, said.append), lambda _: None, DEADLINES)
    tail, flap = SoakTail(1e6, 1, "late", 9e5), NodeCounts("node01", {"eth0 carrier_changes": 1})
    blocks = [
        soak_block(0),
        soak_block(1, nodes=(flap,)),
        soak_block(2, tails=(tail,)),
        soak_block(3, tails=(tail,)),
    ]
    for number, block in enumerate(blocks):
        store.set_document(f"bench/point/{number}", encode(block))
    store.set("bench/state/11", word(rank(0, phase="measuring"), points=4))
    assert isinstance(watch, SoakWatch)
    watch._record.begin(soak_start())
    watch.look()
    told = [line for line in said if line.startswith(("tail", "flap"))]
    assert [line.partition(":")[0] for line in told] == ["flap", "tail"]


def test_a_benchmark_has_no_series_and_a_folder_that_cannot_be_is_refused(
    store: Store, tmp_path: Path
) -> None:
    bench = replace(ORDER, plan=replace(SOAK, soak=None))
    made = watch_of(None, watched(store, bench, NETWORK, lambda _: None), lambda _: None, DEADLINES)
    assert type(made) is BenchWatch
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="--state"):
        watching(store, tmp_path / "file" / "soak")


def test_the_sparkline_shows_what_is_slower() -> None:
    assert sparkline([]) == ""
    assert sparkline([100.0, 100.0, 140.0]) == "▁▁█"
    assert sparkline([0.0]) == "▁"
