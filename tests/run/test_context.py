"""What one process of a run knows of itself, and work that is left where it does not end."""

from __future__ import annotations

import socket
import sys
import threading
from concurrent.futures import TimeoutError as NotDone

import pytest
from msgspec.structs import replace

from ncclcheck.exchange.background import in_background
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.facts.network.names import host_name
from ncclcheck.run.context import Context
from ncclcheck.run.options import RunOptions
from ncclcheck.run.state import RunState
from tests.fact_builders import launch


def context(job_id: str) -> Context:
    place = replace(launch(0, 2), job_id=job_id)
    return Context(RunOptions("preflight"), {}, place, "node01", Deadline(60), lambda _: None)


def test_two_jobs_in_one_store_have_keys_of_their_own() -> None:
    first, second = context("slurm 1.0").prefix, context("slurm 1.1").prefix
    assert first != second
    assert not first.startswith(second)
    assert not second.startswith(first)


def test_nothing_seen_is_one_node_that_met_nobody() -> None:
    seen = RunState()
    assert (seen.snapshot.nodes, seen.snapshot.viewpoint) == ((), "one-node")
    assert seen.prints


def test_the_host_name_is_the_kernels() -> None:
    assert host_name() == socket.gethostname()


def test_background_work_gives_its_result_or_its_error() -> None:
    assert in_background(lambda: 7, "seven").result(10) == 7
    with pytest.raises(ZeroDivisionError):
        in_background(lambda: 1 / 0, "error").result(10)
    with pytest.raises(SystemExit):
        in_background(lambda: sys.exit(3), "exit").result(10)


def test_background_work_that_hangs_can_be_left() -> None:
    never = threading.Event()
    future = in_background(never.wait, "hangs")
    with pytest.raises(NotDone):
        future.result(0.05)
    (thread,) = [thread for thread in threading.enumerate() if thread.name == "hangs"]
    assert thread.daemon  # so our own exit does not wait for it
    never.set()
