"""What py-spy prints, who is inside a collective, and groups of equal stacks."""

from __future__ import annotations

import json

import pytest

from ncclcheck.measure.watching.stacks import (
    is_in_collective,
    main_stack,
    own_frame,
    waiting_call,
)
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.job.watched import Frame

TORCH = "/venv/lib/python3.11/site-packages/torch"
JOB = Frame("/home/me/train.py", 40, "step")
ALL_REDUCE = (
    Frame(f"{TORCH}/distributed/distributed_c10d.py", 3252, "all_reduce"),
    Frame(f"{TORCH}/distributed/c10d_logger.py", 83, "_exception_logger.<locals>.wrapper"),
    JOB,
)
BACKWARD = (
    Frame(f"{TORCH}/autograd/graph.py", 869, "_engine_run_backward"),
    Frame(f"{TORCH}/_tensor.py", 630, "backward"),
    JOB,
)
LOADER = (Frame("/usr/lib/python3.11/threading.py", 324, "wait"), Frame("/home/me/data.py", 7, "__next__"))


def _printed(pid: int, frames: tuple[Frame, ...]) -> list[dict[str, object]]:
    shown = [{"name": frame.function, "filename": frame.file, "line": frame.line} for frame in frames]
    helper = {"name": "run", "filename": "x.py", "line": 1, "module": None}
    return [
        {"pid": pid, "thread_name": "beat", "os_thread_id": pid + 1, "active": True, "frames": [helper]},
        {"pid": pid, "thread_name": None, "os_thread_id": pid, "active": True, "frames": shown},
    ]


def test_the_main_thread_is_the_one_with_the_id_of_the_process() -> None:
    assert main_stack(json.dumps(_printed(7, ALL_REDUCE)), 7) == ALL_REDUCE


@pytest.mark.parametrize("text", ["", "[]", "{}", '[{"frames": 1}]', "Error: no"])
def test_what_is_no_stack_is_refused(text: str) -> None:
    with pytest.raises(DecodeError):
        main_stack(text, 7)


def test_a_collective_and_a_backward_wait_for_other_ranks_and_a_loader_does_not() -> None:
    assert is_in_collective(ALL_REDUCE)
    assert is_in_collective(BACKWARD)
    assert not is_in_collective(LOADER)
    assert not is_in_collective((JOB,))
    assert not is_in_collective(())


def test_the_call_is_named_as_the_job_called_it() -> None:
    assert waiting_call(ALL_REDUCE) == "all_reduce"
    assert waiting_call(BACKWARD) == "backward"
    assert waiting_call(LOADER) == ""


def test_the_line_of_the_job_itself_is_named_not_that_of_a_library() -> None:
    assert own_frame(ALL_REDUCE) == JOB
    assert own_frame(LOADER) == LOADER[1]
    assert own_frame(()) is None
