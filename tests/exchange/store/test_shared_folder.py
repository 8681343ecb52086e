"""Nodes that meet in a folder through their child processes; the child's end, and folders that cannot be used."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.store.shared_folder import FolderClient, job_folder
from ncclcheck.model.fact import Missing
from tests.fact_builders import launch


def of_rank(rank: int, folder: Path) -> FolderClient:
    return FolderClient(job_folder(str(folder), launch(rank, 2), f"node0{rank + 1}"), 29500)


def test_two_nodes_meet_and_leave_nothing_behind(tmp_path: Path) -> None:
    first, second = of_rank(0, tmp_path), of_rank(1, tmp_path)
    try:
        here, there = first.open(Deadline(10)), second.open(Deadline(10))
        assert not isinstance(here, Missing)
        assert not isinstance(there, Missing)
        assert here.set_document("serving", bytes(100_000)) is None
        assert there.wait_document("serving", Deadline(5)) == bytes(100_000)
        assert sorted([here.add("tickets", 1), there.add("tickets", 1)], key=str) == [1, 2]
        assert second.last.others == ("node01",)
        assert second.last.filesystem
    finally:
        second.close()
        first.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_nobody_there_is_absent_and_says_where(tmp_path: Path) -> None:
    second = of_rank(1, tmp_path)
    try:
        found = second.open(Deadline(3.0))  # its child has to start in this time
        assert found == Missing("absent", f"node 0 did not come to {tmp_path}")
        assert second.last.others == ()
    finally:
        second.close()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_an_error_that_names_it(tmp_path: Path) -> None:
    second = of_rank(1, tmp_path / "nope")
    try:
        found = second.open(Deadline(5))
    finally:
        second.close()
    assert isinstance(found, Missing)
    assert found.missing == "error"
    assert str(tmp_path / "nope") in found.detail


def test_what_it_left_is_removed_though_its_node_was_killed(tmp_path: Path) -> None:
    script = (
        "import sys, time; from tests.exchange.store.test_shared_folder import *;"
        f"d = of_rank(0, Path({str(tmp_path)!r})); d.open(Deadline(10)); print('there', flush=True); time.sleep(60)"
    )
    root = Path(__file__).parents[3]
    with subprocess.Popen([sys.executable, "-c", script], cwd=root, stdout=subprocess.PIPE) as node:
        assert node.stdout is not None
        assert node.stdout.readline() == b"there\n"
        assert len(list(tmp_path.iterdir())) == 2
        node.send_signal(signal.SIGKILL)
        node.wait(10)
    deadline = Deadline(10)
    while list(tmp_path.iterdir()) and not deadline.passed:
        os.sched_yield()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_hangs_is_told_from_a_node_0_that_is_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ncclcheck.timeouts.STORE_CALL_S", 0.5)
    first, second = of_rank(0, tmp_path), of_rank(1, tmp_path)
    try:
        assert not isinstance(first.open(Deadline(10)), Missing)
        there = second.open(Deadline(10))
        assert not isinstance(there, Missing)
        assert second.lost() is None
        assert not isinstance(second._process, Missing)
        os.kill(second._process.pid, signal.SIGSTOP)
        assert isinstance(there.get("serving"), Missing)
        lost = second.lost()
        assert lost is not None
        assert lost.detail == f"{tmp_path} did not answer within 0 s: its mount hangs"
    finally:
        second.close()
        first.close()


@pytest.mark.parametrize("rank", [0, 1])
def test_a_helper_that_was_killed_is_told_and_what_it_left_is_removed(tmp_path: Path, rank: int) -> None:
    client = of_rank(rank, tmp_path)
    try:
        assert not isinstance(client.look(), Missing)
        assert client.ended == ""
        assert list(tmp_path.iterdir()) != []
        (tmp_path / "of-a-user").touch()
        os.kill(helper_of(client), signal.SIGKILL)
        assert isinstance(client.open(Deadline(5)), Missing)
        assert client.ended == "was killed by SIGKILL"
    finally:
        client.close()
    assert [path.name for path in tmp_path.iterdir()] == ["of-a-user"]


def helper_of(client: FolderClient) -> int:
    process = client._process
    assert not isinstance(process, Missing)
    return process.pid


def test_the_digest_is_that_of_the_job() -> None:
    of_job = job_folder("/shared", launch(0, 2), "node01").digest
    assert job_folder("/shared", launch(1, 2), "node02").digest == of_job
    assert job_folder("/shared", launch(0, 3), "node01").digest != of_job
