"""What `watch` adds to the environment of a job: only what is not set."""

from __future__ import annotations

from pathlib import Path

from ncclcheck.cli.watching.settings import added_settings, pipe_prefix

FOLDER = Path("/evidence")


def test_recorder_dumps_and_warnings_are_switched_on_and_go_to_the_folder() -> None:
    added = added_settings({}, FOLDER)
    assert added["TORCH_FR_BUFFER_SIZE"] == added["TORCH_NCCL_TRACE_BUFFER_SIZE"] == "2000"
    assert added["NCCL_DEBUG"] == "WARN"
    assert added["NCCL_DEBUG_FILE"] == "/evidence/nccl.%h.%p.log"
    assert pipe_prefix(added) == "/evidence/nccl_pipe_rank_"


def test_what_the_user_has_set_stays_also_under_its_other_name() -> None:
    added = added_settings({"TORCH_NCCL_TRACE_BUFFER_SIZE": "0", "NCCL_DEBUG": "INFO"}, FOLDER)
    assert not {"TORCH_FR_BUFFER_SIZE", "NCCL_DEBUG", "NCCL_DEBUG_FILE"} & set(added)
    assert added["TORCH_NCCL_DUMP_ON_TIMEOUT"] == "1"
    assert added_settings({**added_settings({}, FOLDER)}, FOLDER) == {}
