"""Workers as processes: their environment, their end; `test_workers.py` has what they do in between."""

from __future__ import annotations

import os
import resource
import select
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

import ncclcheck
from ncclcheck.bench.supervise import Running, start
from ncclcheck.bench.task import WorkerTask
from ncclcheck.model.bench import BenchPlan

PLAN = BenchPlan("gloo", ("all_reduce",), (1 << 10,), "float32", 0, 1, 5.0, verify=True)
HOSTS = ("node01", "node02")


@contextmanager
def workers(count: int, **environment: str | None) -> Iterator[Running]:
    """Ranks that nobody serves a store for."""
    tasks = [WorkerTask(rank, 2, rank, "127.0.0.1", 9, "test/", PLAN, HOSTS) for rank in range(count)]
    running = start(tasks, environment)
    try:
        yield running
    finally:
        running.stop(5.0)


def environment_of(pid: int) -> dict[str, str]:
    """What the process got; the kernel shows it some time after it has closed what was not to be inherited."""
    deadline = time.monotonic() + 30
    while not (found := Path(f"/proc/{pid}/environ").read_bytes()):
        assert time.monotonic() < deadline, "an empty environment"
        time.sleep(0.01)
    return dict(entry.split("=", 1) for entry in found.decode().split("\0") if "=" in entry)


def test_ranks_on_nccl_wait_for_their_agent_instead_of_aborting() -> None:
    """Unless the job says otherwise; a rank that aborts for another reason leaves no core file."""
    tasks = [
        WorkerTask(0, 2, 0, "127.0.0.1", 9, "test/", replace(PLAN, backend="nccl"), HOSTS),
        WorkerTask(0, 2, 0, "127.0.0.1", 9, "test/", PLAN, HOSTS),
    ]
    before = resource.getrlimit(resource.RLIMIT_CORE)
    for task, expected in zip(tasks, ("0", None), strict=True):
        resource.setrlimit(resource.RLIMIT_CORE, (before[1], before[1]))
        running = start([task], {})
        resource.setrlimit(resource.RLIMIT_CORE, before)
        try:
            pid = running.poll()[1][0].pid
            assert environment_of(pid).get("TORCH_NCCL_ASYNC_ERROR_HANDLING") == expected
            assert core_limit_becomes(pid, 0)
        finally:
            running.stop(5.0)


def core_limit_becomes(pid: int, limit: int) -> bool:
    deadline = time.monotonic() + 30
    while resource.prlimit(pid, resource.RLIMIT_CORE)[0] != limit and time.monotonic() < deadline:
        time.sleep(0.05)
    return resource.prlimit(pid, resource.RLIMIT_CORE)[0] == limit


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_a_worker_gets_our_environment_as_it_was_changed_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NCCL_DEBUG", "INFO")
    monkeypatch.setenv("NCCL_SOCKET_IFNAME", "lo")
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.delenv("TORCH_CPP_LOG_LEVEL", raising=False)
    monkeypatch.setenv("PYTHONPATH", "/site")
    with workers(1, NCCL_SOCKET_IFNAME=None, GLOO_SOCKET_IFNAME="eth0") as running:
        (state,) = running.poll()[1]
        found = environment_of(state.pid)
    assert "NCCL_SOCKET_IFNAME" not in found
    assert (found["NCCL_DEBUG"], found["GLOO_SOCKET_IFNAME"]) == ("INFO", "eth0")
    assert found["OMP_NUM_THREADS"] == "3"  # the user's own
    assert found["TORCH_CPP_LOG_LEVEL"] == "ERROR"  # ours, where the user said nothing
    parent = str(Path(ncclcheck.__file__).parents[1])
    assert found["PYTHONPATH"].split(os.pathsep)[0] == "/site"
    assert parent in (*found["PYTHONPATH"].split(os.pathsep), str(Path(os.__file__).parent / "site-packages"))


def test_a_fresh_worker_is_starting_and_one_per_task() -> None:
    with workers(2) as running:
        points, states = running.poll()
    assert points == []
    assert [(state.rank, state.host, state.done, state.error_kind) for state in states] == [
        (0, "node01", False, "none"), (1, "node02", False, "none"),
    ]  # fmt: skip
    assert len({state.pid for state in states}) == 2


def test_after_the_stop_every_worker_is_dead_and_nothing_more_is_known() -> None:
    with workers(2) as running:
        pids = [os.pidfd_open(state.pid) for state in running.poll()[1]]
        assert running.stop(5.0) == ()
        for pid in pids:
            assert select.select([pid], [], [], 0)[0]
            os.close(pid)
        assert running.poll() == ([], ())
        assert running.stop(5.0) == ()


def test_descriptors_are_given_back() -> None:
    before = open_descriptors()
    with workers(2):
        assert open_descriptors() > before
    assert open_descriptors() <= before  # those of threads of other tests may be closed meanwhile


def test_no_task_is_no_worker() -> None:
    with workers(0) as running:
        assert running.poll() == ([], ())
        assert running.log(0) == ""


@pytest.mark.parametrize(
    ("value", "reason"), [("zero\0byte", "null byte"), ("x" * (1 << 20), "too long")], ids=["zero", "large"]
)
def test_a_worker_that_cannot_be_started_says_why_at_once_and_leaves_nothing(value: str, reason: str) -> None:
    before, began = open_descriptors(), time.monotonic()
    with pytest.raises(OSError, match=reason), workers(1, BAD=value):
        pass
    assert time.monotonic() - began < 5
    assert open_descriptors() <= before  # those of threads of other tests may be closed meanwhile


def test_a_worker_that_somebody_ends_is_seen_with_its_signal() -> None:
    with workers(1) as running:
        (state,) = running.poll()[1]
        ended = os.pidfd_open(state.pid)
        os.kill(state.pid, signal.SIGTERM)
        assert select.select([ended], [], [], 30)[0]
        os.close(ended)
        (state,) = running.poll()[1]
    assert (state.exit_code, state.stat, state.phase) == (-signal.SIGTERM, "", "starting")


@pytest.mark.slow
def test_a_rank_on_nccl_that_hangs_tells_what_nccl_has_warned_of_since() -> None:
    """Its process is alive and raises nothing: only NCCL's log has the reason."""
    task = WorkerTask(0, 2, 0, "127.0.0.1", 9, "test/", replace(PLAN, backend="nccl"), HOSTS)
    running = start([task], {})
    try:
        (state,) = running.poll()[1]
        os.kill(state.pid, signal.SIGSTOP)
        log = running._workers[0].nccl_log
        assert log is not None
        assert running.poll()[1][0].last_words == ""
        os.write(log.descriptor, b"node01:7:9 [0] NCCL WARN Cuda failure 217 'uncorrectable ECC error'\n")
        deadline = time.monotonic() + 30
        while not (words := running.poll()[1][0].last_words):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert words == "node01:7:9 [0] NCCL WARN Cuda failure 217 'uncorrectable ECC error'\n"
    finally:
        running.stop(5.0)
