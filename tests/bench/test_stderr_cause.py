"""The end of a worker whose NCCL group broke, as torch 2.4 and 2.7 write it."""

from __future__ import annotations

from ncclcheck.bench.stderr_cause import is_echo, is_own_gpu, last_words, reason, without_frames

ABORT = """\
[rank1]:[E1122 ProcessGroupNCCL.cpp:1895] [PG ID 0 PG GUID 0 Rank 1] Process group watchdog thread terminated with \
exception: NCCL error: remote process exited or there was a network error, NCCL version 2.26.2
ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.
Last error:
socketProgress: Connection closed by remote peer node02<41234>
Exception raised from checkForNCCLErrorsInternal at /pytorch/ProcessGroupNCCL.cpp:2318 (most recent call first):
frame #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x98 (0x7f85 in /lib/libc10.so)
frame #1: c10d::ProcessGroupNCCL::WorkNCCL::checkAndSetException() + 0x88 (0x7f86 in libtorch_cuda.so)
C++ CapturedTraceback:
#4 std::_Function_handler<std::shared_ptr<c10::LazyValue<std::string> const> ()> from Logging.cpp:0

"""


def test_the_reason_stands_before_the_frames() -> None:
    words = without_frames(ABORT)
    assert words.endswith("Last error:\nsocketProgress: Connection closed by remote peer node02<41234>")


def test_who_lost_a_peer_is_no_cause() -> None:
    assert is_echo(without_frames(ABORT))
    assert not is_echo("RuntimeError: CUDA error: uncorrectable ECC error encountered")
    assert not is_echo("ncclSystemError: System call (e.g. socket, malloc) or external library call failed")


# What follows the frames with torch 2.7, before the process ends.
DUMPS = """\
[rank3]:[E1122 ProcessGroupNCCL.cpp:2271] [PG ID 0 Rank 3]  failure detected by watchdog at work sequence id: 190
[rank3]:[E1122 ProcessGroupNCCL.cpp:1746] [PG ID 0 Rank 3] Received a dump signal due to a collective timeout from \
this local rank and we will try our best to dump the debug info. Last enqueued NCCL work: 222, last completed NCCL \
work: 189.This is most likely caused by incorrect usages of collectives, e.g., wrong sizes used across ranks, the \
order of collectives is not same for all ranks or the scheduled collective, for some reason, didn't run. Additionally, \
this can be caused by GIL deadlock or other reasons such as network errors or bugs in the communications library.
[rank3]:[E1122 ProcessGroupNCCL.cpp:1536] [PG ID 0 Rank 3] ProcessGroupNCCL preparing to dump debug info.
"""


def test_the_reason_is_kept_though_torch_says_more_after_it() -> None:
    words = last_words(ABORT + DUMPS, 400)
    assert words.startswith("NCCL error: remote process exited")
    assert "Connection closed by remote peer node02<41234>" in words
    assert is_echo(words)
    assert len(words) <= 400


def test_without_a_reason_the_end_is_kept() -> None:
    assert last_words(DUMPS, 60).endswith("ProcessGroupNCCL preparing to dump debug info.")
    assert last_words("free(): invalid pointer\n", 400) == "free(): invalid pointer"


def test_python_tracebacks_stay() -> None:
    text = 'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\nValueError: #3 is none'
    assert without_frames(text) == text


def test_what_names_no_error_is_no_reason() -> None:
    assert reason("UserWarning: barrier() guesses the GPU", 400) == ""
    assert "NCCL error: remote process exited" in reason(ABORT, 400)


def test_a_failed_call_to_the_own_gpu_is_told_from_a_lost_peer() -> None:
    assert is_own_gpu("NCCL WARN Cuda failure 217 'uncorrectable ECC error encountered'")
    assert is_own_gpu("unhandled cuda error (run with NCCL_DEBUG=INFO for details)")
    assert not is_own_gpu(ABORT)
