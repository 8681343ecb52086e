"""A rank measures what its turns say, and sleeps until they come."""

from __future__ import annotations

import time

import psutil
import pytest
from msgspec.structs import replace

from ncclcheck.bench.gpu.device import open_device
from ncclcheck.bench.point import measure_round, prepare
from ncclcheck.bench.progress_page import ProgressPage, new_page, read_page
from ncclcheck.bench.supervise import start
from ncclcheck.bench.task import WorkerTask
from ncclcheck.bench.turns import Turn, mean_of, take_turns
from ncclcheck.exchange.store import keys
from ncclcheck.model.bench import BenchPlan
from ncclcheck.model.codec import encode
from ncclcheck.model.errors import DecodeError

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("group")]
PLAN = BenchPlan("gloo", ("all_reduce",), (1 << 10, 1 << 12), "float32", 1, None, 5.0, verify=False)
TASK = WorkerTask(0, 1, 0, "127.0.0.1", 1, "test/", PLAN, ("node01",), turns="as-is")
LAST = encode(Turn("all_reduce", 0, 0))


class GivenTurns:
    """A store in which all turns stand already."""

    def __init__(self, *turns: bytes) -> None:
        self.values = {keys.bench_turn("as-is", number): turn for number, turn in enumerate(turns)}

    def wait_for(self, key: str) -> bytes:
        return self.values[key]

    def set(self, key: str, value: bytes) -> None:
        self.values[key] = value


def test_each_turn_is_measured_and_its_time_left_under_its_number() -> None:
    store = GivenTurns(encode(Turn("all_reduce", 1 << 10, 3)), encode(Turn("all_reduce", 1 << 12, 70)), LAST)
    page = new_page("turns")
    take_turns(prepare(TASK, open_device("gloo", 0), ProgressPage(page)), "as-is", store)
    assert all(mean_of(store.values[keys.bench_round("as-is", number)]) > 0 for number in (0, 1))
    assert keys.bench_round("as-is", 2) not in store.values
    progress = read_page(page)
    assert (progress.phase, progress.inside) == ("waiting", False)


@pytest.mark.parametrize(
    "turn",
    [b"", b"{}", encode(Turn("all_reduce", 1 << 20, 1)), b'{"op":"shell","size_bytes":1,"iterations":1}'],
)
def test_a_turn_that_is_none_or_not_of_the_plan_is_refused(turn: bytes) -> None:
    rank = prepare(TASK, open_device("gloo", 0), ProgressPage(None))
    with pytest.raises(DecodeError):
        take_turns(rank, "as-is", GivenTurns(turn))


@pytest.mark.parametrize("data", [b"", b"{}", b'{"mean_us":0.0}', b'{"mean_us":-1.0}', b'{"mean_us":"1"}'])
def test_a_time_that_is_none_is_refused(data: bytes) -> None:
    with pytest.raises(DecodeError):
        mean_of(data)


def test_more_iterations_than_buffers_are_measured_in_several_batches() -> None:
    rank = prepare(TASK, open_device("gloo", 0), ProgressPage(None))
    calls: list[int] = []
    counted = rank.device.time_calls

    def time_calls(made: object, progress: ProgressPage) -> list[float]:
        times_us = counted(made, progress)  # type: ignore[arg-type]
        calls.append(len(times_us))
        return [float(100 * len(calls))] * len(times_us)

    mean_us = measure_round(
        replace(rank, device=replace(rank.device, time_calls=time_calls)), "all_reduce", 1 << 10, 40
    )
    assert calls == [1, 32, 8]  # the first call is not timed
    assert mean_us == pytest.approx((32 * 200 + 8 * 300) / 40)


def are_idle(processes: list[psutil.Process]) -> bool:
    before = [sum(one.cpu_times()[:2]) for one in processes]
    time.sleep(2.0)  # the time over which they are watched
    return all(sum(one.cpu_times()[:2]) - was < 0.1 for one, was in zip(processes, before, strict=True))


@pytest.mark.further
def test_ranks_that_wait_for_their_turn_take_no_cpu_time_and_measure_when_it_comes() -> None:
    import torch.distributed as dist

    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    tasks = [
        WorkerTask(
            rank, 2, rank, "127.0.0.1", store.port, "t/", PLAN, ("a", "b"), turns="as-is", turns_prefix="p/"
        )
        for rank in (0, 1)
    ]
    running = start(tasks, {"GLOO_SOCKET_IFNAME": "lo"})
    try:
        deadline = time.monotonic() + 60
        while not all(state.phase == "waiting" for state in running.poll()[1]):
            assert time.monotonic() < deadline, running.poll()
            time.sleep(0.05)
        processes = [psutil.Process(state.pid) for state in running.poll()[1]]
        assert are_idle(processes) or are_idle(processes)  # on a slow machine they still get ready at first
        store.set("p/" + keys.bench_turn("as-is", 0), encode(Turn("all_reduce", 1 << 12, 5)))
        assert mean_of(bytes(store.get("p/" + keys.bench_round("as-is", 0)))) > 0
        store.set("p/" + keys.bench_turn("as-is", 1), LAST)
        while not all(state.done for state in running.poll()[1]):
            assert time.monotonic() < deadline, running.poll()
            time.sleep(0.05)
    finally:
        assert running.stop(5.0) == ()
