"""What `watch` adds to the environment of a job: only what is not set."""

from __future__ import annotations

from pathlib import Path

from ncclcheck.cli.watching.settings import added_settings, pipe_prefix, torch_version

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


def test_torch_gets_only_the_names_that_it_does_not_warn_of() -> None:
    new, old = added_settings({}, FOLDER, (2, 13)), added_settings({}, FOLDER, (2, 8))
    assert new["TORCH_FR_BUFFER_SIZE"] == old["TORCH_NCCL_TRACE_BUFFER_SIZE"] == "2000"
    assert new["TORCH_FR_DUMP_TEMP_FILE"] == old["TORCH_NCCL_DEBUG_INFO_TEMP_FILE"]
    assert not {"TORCH_NCCL_TRACE_BUFFER_SIZE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"} & set(new)
    assert not {"TORCH_FR_BUFFER_SIZE", "TORCH_FR_DUMP_TEMP_FILE"} & set(old)
    assert (torch_version() or (0,)) >= (2, 0)
