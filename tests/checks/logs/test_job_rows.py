"""Tables of jobs: which rows say that the job of the log succeeded, and which leave it open."""

from __future__ import annotations

import pytest

from ncclcheck.checks.logs._job_rows import rows_of_failure, rows_of_success
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
