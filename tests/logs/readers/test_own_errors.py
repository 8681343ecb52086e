"""Which exceptions are the program's own, and which only tell that another process failed or was not there."""

from __future__ import annotations

import pytest

from tests.logs.rounds import explain

_STEP = "step 1 loss 2.0\n"


@pytest.mark.parametrize(
    "line",
    [
        "RuntimeError: Failed to connect to database 'runs' at db1:5432",
        "ValueError: tokenizer failed to initialize: no vocab.json",
        "RuntimeError: request to the tracking server timed out",
        "NetworkxError: graph is not connected",
        "TimeoutError: the lock of /data/cache was not released",
        "subprocess.TimeoutExpired: Command 'make data' timed out after 60 seconds",
    ],
)
def test_an_error_of_the_program_is_its_own_whatever_words_it_shares_with_those_of_ranks(line: str) -> None:
    found = explain("job.log", f"{_STEP}Traceback (most recent call last):\n{line}\n".encode())
    assert found.findings[0].slug == "rank-exception"


@pytest.mark.parametrize(
    "line",
    [
        "RuntimeError: Engine core initialization failed. See root cause above.",
        "TimeoutError: ",
        "TimeoutError: RPC call to execute_model timed out.",
        "TimeoutError: Waiting for worker 3 to come up timed out",
        "RuntimeError: rank 3 timed out",
        "RuntimeError: the daemon failed to connect to bootstrap peers",
    ],
)
def test_an_error_that_tells_of_another_process_is_no_cause(line: str) -> None:
    found = explain("job.log", f"{_STEP}Traceback (most recent call last):\n{line}\n".encode())
    assert found.findings[0].slug != "rank-exception"
