"""Tables of jobs: which rows say that the job of the log succeeded, and which leave it open."""

from __future__ import annotations

import pytest

from ncclcheck.checks.logs._job_rows import (
    job_of,
    pods_completed,
    pods_failed,
    rows_of_failure,
    rows_of_success,
)
from tests.checks.logs.explaining import read

_POD = "$ kubectl logs llama-worker-1\nloading\n"


def succeeded(log: str) -> bool:
    return bool(rows_of_success(read(log)))


@pytest.mark.parametrize(
    "rows",
    [
        "77   train  gpu  64 COMPLETED 0:0\n77.batch  batch  16 COMPLETED 0:0\n77.0  python  64 COMPLETED 0:0\n",
        "77|train|COMPLETED|0:0\n77.extern|extern|COMPLETED|0:0\n",
        "76  train  gpu  FAILED  1:0\n77  train  gpu  COMPLETED  0:0\n",
        "77_1  train  COMPLETED  0:0\n77_2  train  COMPLETED  0:0\n",
    ],
)
def test_a_job_of_slurm_succeeded_if_all_its_rows_are_completed(rows: str) -> None:
    assert succeeded(rows)


@pytest.mark.parametrize(
    "rows",
    [
        "77  train  COMPLETED  0:0\n77.0  python  NODE_FAIL\n",
        "77  train  RUNNING  0:0\n77.0  prep  COMPLETED  0:0\n",
        f"77  train  FAILED{' ' * 60}1:0\n77.0  prep  COMPLETED  0:0\n",
        "76  prep  COMPLETED  0:0\n77  train  RUNNING  0:0\n",
        "77_1  train  COMPLETED  0:0\n77_2  train  TIMEOUT  0:0\n",
        "77.0  prep  COMPLETED  0:0\n",
        "77 COMPLETED-eval FAILED 1:0\n",
        "2 of 4 ranks COMPLETED at 12:30:01\n",
        "3 atexit hooks COMPLETED in 00:00:03\n",
    ],
)
def test_what_leaves_the_end_of_a_job_of_slurm_open_is_no_success(rows: str) -> None:
    assert not succeeded(rows)


def test_a_row_of_kubernetes_counts_for_the_job_whose_pods_the_log_names() -> None:
    assert succeeded(f"{_POD}llama    Succeeded   58m\n")
    assert succeeded(f"{_POD}llama    Running   1m\nllama    Succeeded   58m\n")
    assert not succeeded(f"{_POD}llama    Succeeded   58m\nllama    Failed   59m\n")
    assert not succeeded(f"{_POD}old-job    Succeeded   5d\n")
    assert not succeeded("old-job    Succeeded   5d\n")


def test_a_failed_row_counts_for_the_job_of_the_log_or_for_the_only_one() -> None:
    assert rows_of_failure(read(f"{_POD}llama    Failed   58m\nold-job    Succeeded   5d\n"))
    assert rows_of_failure(read("my-job    Failed   58m\n"))
    assert not rows_of_failure(read(f"{_POD}llama    Succeeded   58m\nold-job    Failed   5d\n"))


@pytest.mark.parametrize(
    ("pod", "job"),
    [
        ("bert-worker-0", "bert"),
        ("multi-worker-worker-2", "multi-worker"),
        ("mnist-gpu-launcher-4n7wd", "mnist-gpu"),
        ("llm-node-0-1-x8b2q", "llm"),
        ("lora-7fk2d", "lora"),
        ("train-3-zz4tq", "train"),
        ("gpt-2-worker-0", "gpt-2"),
    ],
)
def test_a_pod_is_of_the_job_that_its_name_begins_with(pod: str, job: str) -> None:
    assert job_of(pod) == job


def pods(*rows: str) -> str:
    """Return a log of two pods of the job `bert`, and a list of pods: each row is a name, a state and restarts."""
    begun = "".join(
        f"bert-worker-{rank}:7:8 [0] NCCL INFO comm 0x1 rank {rank} nranks 2 cudaDev 0 busId 1e0 - Init COMPLETE\n"
        for rank in (0, 1)
    )
    table = ((row.split()) for row in rows)
    return f"{begun}$ kubectl get pods\n" + "".join(
        f"{name}   0/1   {state}   {''.join(restarts) or '0'}   41m\n" for name, state, *restarts in table
    )


@pytest.mark.parametrize(
    "rows",
    [
        ("bert-worker-0 Completed", "bert-worker-1 Completed"),
        (
            "bert-worker-0 Running",
            "bert-worker-1 Running",
            "bert-worker-0 Completed",
            "bert-worker-1 Completed",
        ),
        ("bert-launcher-4n7wd Completed", "bert-worker-0 Running", "bert-worker-1 Running"),
        ("old-worker-0 Error", "bert-worker-0 Completed", "bert-worker-1 Completed"),
    ],
)
def test_a_job_ended_well_if_its_pods_have_completed_or_its_launcher_has(rows: tuple[str, ...]) -> None:
    assert pods_completed(read(pods(*rows)))


@pytest.mark.parametrize(
    "rows",
    [
        (),
        ("bert-worker-0 Completed",),
        ("bert-worker-0 Completed", "bert-worker-1 Error"),
        ("bert-worker-0 Completed", "bert-worker-1 Running"),
        ("bert-master-0 Completed", "bert-worker-0 Running", "bert-worker-1 Running"),
        ("bert-worker-0 Completed", "bert-worker-1 Completed 2"),
        ("bert-worker-0 Completed", "bert-worker-1 Completed", "bert-worker-1 Error"),
        ("bert-worker-0 Completed", "bert-worker-1 Error", "bert-worker-1 Completed"),
        ("bert-launcher-4n7wd Completed", "bert-worker-0 Running", "bert-worker-1 OOMKilled"),
        (
            "bert-launcher-4n7wd Error",
            "bert-launcher-x8b2q Completed",
            "bert-worker-0 Running",
            "bert-worker-1 Running",
        ),
        ("old-worker-0 Completed", "old-worker-1 Completed"),
        ("bert-2-worker-0 Completed", "bert-2-worker-1 Completed"),
    ],
)
def test_a_list_of_pods_that_leaves_the_end_of_the_job_open_is_no_success(rows: tuple[str, ...]) -> None:
    assert not pods_completed(read(pods(*rows)))


def test_a_list_of_pods_before_the_last_start_of_nccl_is_of_another_run() -> None:
    log = pods("bert-worker-0 Completed", "bert-worker-1 Completed")
    assert not pods_completed(read(log + pods()))


def test_every_pod_of_a_long_list_is_read() -> None:
    rows = [f"bert-worker-{number} Completed" for number in range(12)]
    assert pods_completed(read(pods(*rows)))
    assert not pods_completed(read(pods(*rows[:-1], "bert-worker-11 Running")))


def test_a_pod_failed_if_its_last_row_says_so_and_it_is_of_the_job_of_the_log() -> None:
    assert pods_failed(read(pods("bert-worker-0 Completed", "bert-worker-1 Error")))
    assert not pods_failed(read(pods("bert-worker-0 Completed", "old-worker-1 Error")))
    assert not pods_failed(read(pods("bert-worker-0 Init:0/1", "bert-worker-1 Running")))


def test_of_a_job_of_slurm_that_was_requeued_the_last_row_counts() -> None:
    assert succeeded("77  train  PREEMPTED  0:0\n77  train  COMPLETED  0:0\n")
    assert not succeeded("77  train  COMPLETED  0:0\n77  train  PREEMPTED  0:0\n")
