"""NC944 undetermined: no guess, and what to collect. And healthy logs, which are an answer too."""

from __future__ import annotations

import pytest

from tests.checks.logs.explaining import explain


def test_debug_was_off() -> None:
    result = explain(
        "[rank0]: torch.distributed.DistBackendError: NCCL error in: x, unhandled system error, NCCL version 2.19.3\n"
        "[rank0]: ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error.\n"
    )
    assert result.outcome == "undetermined"
    assert result.findings[0].slug == "undetermined"
    assert "NCCL_DEBUG=INFO" in result.findings[0].summary
    assert {finding.severity for finding in result.findings} == {"warning"}


def test_only_the_launcher_speaks() -> None:
    result = explain("E0314 api.py:869] failed (exitcode: 1) local_rank: 3 (pid: 443470) of binary: python\n")
    assert result.outcome == "undetermined"
    assert "--log-dir" in result.findings[0].summary


def test_one_rank_of_many_waited() -> None:
    result = explain(
        "[rank2]:[E 1 x.cpp:1] [Rank 2] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=5, "
        "OpType=ALLREDUCE, NumelIn=4, NumelOut=4, Timeout(ms)=600000) ran for 600411 milliseconds before timing out.\n"
    )
    assert result.outcome == "undetermined"
    assert "all ranks" in result.findings[0].summary


def test_a_start_that_never_completes() -> None:
    start = "n1:1:2 [0] NCCL INFO comm 0x1 rank 0 nranks 2 cudaDev 0 busId 1 commId 0x2 - Init START\n"
    assert explain(start).outcome == "undetermined"
    assert explain(start + start.replace("START", "COMPLETE")).outcome == "healthy"


def test_nothing_of_the_kind() -> None:
    assert explain("some\nother\ntext\n").outcome == "nothing"
    assert explain("").outcome == "nothing"


HEALTHY = [
    """
n1:1:1 [0] NCCL INFO NET/Plugin: Could not find: libnccl-net.so. Using internal network plugin.
n1:1:2 [0] NCCL INFO NVLS multicast support is not available on dev 0
Training completed. Total time 3:21:08
[rank0]:[W1 00:00:00.1 x.cpp:1168] Warning: WARNING: process group has NOT been destroyed before we destruct it.
""",
    """
0: epoch 1 loss 0.3 errors 0 failed_samples 0
0: [W socket.cpp:601] [c10d] The client socket has failed to connect to [n1]:29500 (errno: 111 - Connection refused).
0: training finished, test error 0.021
""",
    """
[rank0]: W step 3 validation error: 0.12 mean absolute error
[rank0]: Killed 3 stale workers of the last run; continuing
[rank0]: job done
""",
    """
2025-01-01T00:00:01Z worker-0 checkpoint not found, starting from scratch
2025-01-01T00:00:02Z worker-0 /opt/x.py:12: UserWarning: FileNotFoundError was handled: no cache
2025-01-01T01:00:02Z worker-0 Training finished
""",
]


@pytest.mark.parametrize("text", HEALTHY)
def test_what_only_sounds_bad_is_no_failure(text: str) -> None:
    result = explain(text)
    assert result.outcome == "healthy"
    assert [finding for finding in result.findings if finding.severity == "error"] == []


def test_a_log_that_ends_with_the_start_of_nccl_shows_neither_work_nor_an_end() -> None:
    start = "n1:1:2 [0] NCCL INFO comm 0x1 rank 0 nranks 2 cudaDev 0 busId 1 commId 0x2 - Init START\n"
    log = "loading the model\n" + start + start.replace("START", "COMPLETE")
    assert explain(log).outcome == "undetermined"
    assert explain(log + "step 1 loss 2.0\n").outcome == "healthy"


def test_a_signal_says_that_a_process_crashed_and_not_why() -> None:
    result = explain("srun: error: n7: task 3: Segmentation fault (core dumped)\n")
    assert result.outcome == "undetermined"
    assert "the stack of the process that crashed" in result.findings[0].summary
    assert any("PYTHONFAULTHANDLER=1" in command for command in result.findings[0].fixes[0].commands)


def test_a_crash_with_its_stack_is_of_the_program() -> None:
    result = explain(
        "Fatal Python error: Segmentation fault\n\nCurrent thread 0x00007f (most recent call first):\n"
        '  File "/u/tok.py", line 12 in encode\n'
    )
    assert result.findings[0].slug == "rank-exception"
    assert result.outcome == "named"
