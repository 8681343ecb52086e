"""Lines that call themselves errors, in the forms of the programs that write them."""

from __future__ import annotations

import pytest

from ncclcheck.logs.readers.levels import is_error
from tests.logs.rounds import explain


@pytest.mark.parametrize(
    "text",
    [
        "srun: error: something new",
        "slurmstepd: error: something new",
        "error: something new",
        "Error response from daemon: something new",
        "docker: Error response from daemon: something new",
        "FATAL: something new",
        "[E1122 10:00:00.123 Somewhere.cpp:12] something new",
        "[E Somewhere.cpp:12] something new",
        "bash: line 1: trainer: command not found",
        "/bin/sh: 1: trainer: not found",
    ],
)
def test_such_a_line_is_an_error(text: str) -> None:
    assert is_error(None, text)
    assert explain("job.log", f"starting\n{text}\n".encode()).outcome == "undetermined"


@pytest.mark.parametrize(
    "text", ["loss 0.1 error 0.2", "reconstruction error: 0.3", "no errors", "step 1", ""]
)
def test_such_a_line_is_none(text: str) -> None:
    assert not is_error(None, text)


@pytest.mark.parametrize("level", ["ERROR", "CRITICAL", "FATAL"])
def test_a_loggers_level_says_it(level: str) -> None:
    assert is_error(level, "anything")
    assert not is_error("WARNING", "anything")


def test_an_error_line_before_the_job_finished_is_none_of_its_end() -> None:
    log = "ERROR 11-22 10:23:45 worker.py:123] something new\nstep 2\nTraining finished successfully\n"
    assert explain("job.log", log.encode()).outcome == "healthy"


def test_an_error_line_of_vllm_is_seen_behind_its_prefix() -> None:
    log = "INFO 11-22 10:23:44 worker.py:1] loading\nERROR 11-22 10:23:45 worker.py:123] something new\n"
    assert explain("job.log", log.encode()).outcome == "undetermined"
