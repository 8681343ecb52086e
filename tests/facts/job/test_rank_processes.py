"""Ranks are found among the descendants of a process, and read from /proc."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ncclcheck.facts.job.rank_processes import (
    RankProcess,
    find_ranks,
    kernel_view,
    look_at,
    network_bytes,
    own_pid,
    own_pids_of,
    pids_of,
    stat_fields,
)

_LAUNCHER = (
    "import os, subprocess, sys\n"
    "children = [subprocess.Popen([sys.executable, '-c', sys.argv[1]], stdin=subprocess.PIPE,"
    " env={**os.environ, 'RANK': str(4 + i), 'LOCAL_RANK': str(i), 'WORLD_SIZE': '8', 'LOCAL_WORLD_SIZE': '2'})"
    " for i in range(2)]\n"
    "print('started', flush=True)\n"
    "sys.stdin.read()\n"
)
_RANK = "import sys; sys.stdin.read()"
_RANK_WITH_CHILD = (
    "import subprocess, sys; "
    "child = subprocess.Popen(['sh', '-c', 'head -c 3000000 /dev/zero > /dev/null; cat'], stdin=subprocess.PIPE); "
    "sys.stdin.read()"
)


@contextmanager
def _launched(rank: str, **environ: str) -> Iterator[int]:
    usual = {name: value for name, value in os.environ.items() if not name.endswith("RANK")}
    with subprocess.Popen(
        [sys.executable, "-c", _LAUNCHER, rank],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**usual, **environ},
    ) as launcher:
        assert launcher.stdout is not None
        launcher.stdout.readline()
        yield launcher.pid


def _both(launcher: int) -> tuple[RankProcess, ...]:
    """Return its ranks once both are there: for a moment after exec a process has no environment."""
    deadline = time.monotonic() + 30
    while len(ranks := find_ranks(launcher)) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    return ranks


def test_the_ranks_of_a_launcher_are_its_children_with_a_local_rank() -> None:
    with _launched(_RANK) as launcher:
        ranks = _both(launcher)
        assert [rank.rank for rank in ranks] == [4, 5]
        assert {rank.world_size for rank in ranks} == {8}
        assert launcher not in {rank.pid for rank in ranks}
    deadline = time.monotonic() + 30
    while look_at(ranks, 0.0).ranks:  # they end with their standard input
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_process_of_a_rank_belongs_to_it_and_is_counted_with_it() -> None:
    with _launched(_RANK_WITH_CHILD) as launcher:
        deadline = time.monotonic() + 30
        moved = 0
        ranks = _both(launcher)
        assert [rank.rank for rank in ranks] == [4, 5]
        while moved < 3_000_000 and time.monotonic() < deadline:
            moved = min(look.io_bytes for look in look_at(ranks, 0.0).ranks)
            time.sleep(0.05)
        assert moved >= 3_000_000


def test_a_process_without_a_launcher_is_the_only_rank() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _RANK], stdin=subprocess.PIPE, env={"SLURM_PROCID": "3"}
    ) as process:
        deadline = time.monotonic() + 30  # until exec has happened its environment is ours
        while not (ranks := find_ranks(process.pid)) or ranks[0].rank != 3:
            assert time.monotonic() < deadline
        assert (len(ranks), ranks[0].pid) == (1, process.pid)
        assert "State:" in kernel_view(process.pid)


def test_a_process_in_a_container_knows_itself_by_its_last_number() -> None:
    status = "Name:\tpython\nPid:\t4711\nNStgid:\t4711\t7\nNSpid:\t4711\t52\t7\nNSpgid:\t4711\t7\n"
    assert own_pid(status, 4711) == 7
    assert own_pid("Name:\tpython\nPid:\t4711\n", 4711) == 4711
    assert own_pid("Name:\tpython\nNSpid:\n", 4711) == 4711


def test_a_process_outside_containers_has_one_number() -> None:
    own = find_ranks(os.getpid())
    assert os.getpid() in pids_of(own)
    assert own_pids_of(own) == pids_of(own)


def test_a_process_that_is_not_there_has_no_ranks() -> None:
    with subprocess.Popen(["true"]) as process:
        process.wait()
    assert find_ranks(process.pid) == ()
    assert stat_fields(process.pid) == []
    assert kernel_view(process.pid) == ""


def test_the_bytes_of_all_links_but_the_loopback_and_of_the_rdma_ports_are_counted(tmp_path: Path) -> None:
    assert network_bytes() >= 0
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "dev").write_text(
        "Inter-|   Receive  |  Transmit\n face |bytes packets errs drop fifo frame compressed multicast|bytes\n"
        "    lo: 500 1 0 0 0 0 0 0 500 1 0 0 0 0 0 0\n"
        "  eth0: 1000 1 0 0 0 0 0 0 200 1 0 0 0 0 0 0\n"
    )
    for port, sent, received in ((1, 100, 50), (2, 10, 0)):
        counters = tmp_path / "rdma" / "mlx5_0" / "ports" / str(port) / "counters"
        counters.mkdir(parents=True)
        (counters / "port_xmit_data").write_text(f"{sent}\n")
        (counters / "port_rcv_data").write_text(f"{received}\n")
    assert network_bytes(tmp_path, tmp_path / "rdma") == 1200 + 4 * 160
    (counters / "port_rcv_data").write_text("nothing")  # a damaged one costs nobody else
    assert network_bytes(tmp_path, tmp_path / "rdma") == 1200 + 4 * 160
