"""NC929 data-or-file-missing: lines of several versions, launchers and wordings mean it."""

from __future__ import annotations

from tests.checks.logs.explaining import assert_cause


def test_mount() -> None:
    text = (
        "[st2] [rank9]: FileNotFoundError: [Errno 2] No such file or directory: '/mnt/lustre/c4/shard-00"
        "01.tar'\n"
    )
    assert_cause(text, "data-or-file-missing", {"st2", "rank 9"})


def test_hub() -> None:
    text = (
        "[rank0]: OSError: meta-llama/x is not a local folder and is not a valid model identifier listed"
        " on 'https://huggingface.co/models'\n"
    )
    assert_cause(text, "data-or-file-missing", {"rank 0"})
