"""Which exceptions are the program's own, and which only tell that another process failed or was not there."""

from __future__ import annotations

import pytest

from tests.logs.rounds import explain


def first_cause(line: str) -> str:
    log = f"step 1 loss 2.0\nTraceback (most recent call last):\n{line}\n"
    return explain("job.log", log.encode()).findings[0].slug


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
    assert first_cause(line) == "rank-exception"


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
    assert first_cause(line) != "rank-exception"
