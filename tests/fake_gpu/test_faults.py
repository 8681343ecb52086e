"""Ranks that die, stop or fail in torch's own NCCL group: the culprit is named, and only the culprit."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.fake_gpu.stack import BENCH, FakeTorch, Outcome, run, started

pytestmark = [pytest.mark.fake_gpu, pytest.mark.slow]
CULPRIT = 2
LONG = (*BENCH, "--ops", "all_reduce", "--sizes", "64K", "--iters", "100000")
# What a job may have set, and --as-is keeps: torch's watchdog then ends the ranks that lose a peer.
WATCHDOG = {"TORCH_NCCL_ASYNC_ERROR_HANDLING": "1"}
SYSTEM_ERROR = 2  # ncclSystemError
FIRST_CALL, LATER = 2, 200


def named(outcome: Outcome) -> dict[int, str]:
    """The ranks that are named, with what became of each; the check says the same."""
    failures = {failure["rank"]: failure["state"] for failure in outcome.failures}
    findings = [found["summary"] for found in outcome.report["findings"] if found["slug"] == "bench-hang"]
    assert [summary.split(" on ")[0] for summary in findings] == [f"rank {rank}" for rank in failures]
    assert outcome.code in (1, 4), outcome.printed
    return failures


@pytest.mark.parametrize("peers", ["error", "hang"])
@pytest.mark.parametrize("as_is", [False, True], ids=["", "as-is"])
def test_a_killed_rank_is_named(torch: FakeTorch, tmp_path: Path, peers: str, as_is: bool) -> None:
    words, env = ([*LONG, "--as-is"], WATCHDOG) if as_is else ([*LONG], {})
    with started(torch, tmp_path, *words, env={**env, "FAKENCCL_DEAD": peers}) as running:
        os.kill(running.measuring()[CULPRIT], signal.SIGKILL)
        outcome = running.outcome()
    assert named(outcome) == {CULPRIT: "died"}
    assert "SIGKILL" in outcome.failures[0]["detail"]


def test_a_stopped_rank_is_named(torch: FakeTorch, tmp_path: Path) -> None:
    with started(torch, tmp_path, *LONG) as running:
        os.kill(running.measuring()[CULPRIT], signal.SIGSTOP)
        outcome = running.outcome()
    assert named(outcome) == {CULPRIT: "stopped"}


@pytest.mark.parametrize("peers", ["error", "hang"])
@pytest.mark.parametrize("how", ["sync", "async"])
@pytest.mark.parametrize(
    ("as_is", "call"), [(False, LATER), (True, LATER), (True, FIRST_CALL)], ids=["", "as-is", "as-is-first"]
)
def test_a_rank_whose_nccl_call_fails_is_named_with_the_reason(
    torch: FakeTorch, tmp_path: Path, peers: str, how: str, as_is: bool, call: int
) -> None:
    fail = {"FAKENCCL_FAIL": f"{CULPRIT}:{call}:{SYSTEM_ERROR}:{how}", "FAKENCCL_DEAD": peers}
    words, env = ([*LONG, "--as-is"], WATCHDOG) if as_is else ([*LONG], {})
    outcome = run(torch, tmp_path, *words, env={**env, **fail})
    assert named(outcome) == {CULPRIT: "error"}
    detail = outcome.failures[0]["detail"]
    assert "ncclSystemError" in detail
    assert "frame #" not in detail


def test_a_cuda_error_is_of_the_rank_that_has_it(torch: FakeTorch, tmp_path: Path) -> None:
    outcome = run(torch, tmp_path, *LONG, env={"FAKENCCL_FAIL": f"{CULPRIT}:{LATER}:1:async"})
    assert named(outcome) == {CULPRIT: "error"}
    assert "unhandled cuda error" in outcome.failures[0]["detail"]


def test_one_wrong_bit_is_found_and_shown(torch: FakeTorch, tmp_path: Path) -> None:
    words = (*BENCH, "--ops", "all_reduce", "--sizes", "64K", "--iters", "3")
    outcome = run(torch, tmp_path, *words, env={"FAKENCCL_CORRUPT": str(CULPRIT)})
    point = outcome.points["all_reduce", 64 << 10]
    assert (point["wrong"], point["wrong_ranks"]) == (3, [CULPRIT])
    first = point["first_wrong"]
    assert first["rank"] == CULPRIT
    assert first["got"] != first["expected"]
    assert "bench-wrong-data" in outcome.errors
