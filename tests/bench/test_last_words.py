"""The end of a worker whose NCCL group broke, as torch 2.4 and 2.7 write it."""

from __future__ import annotations

from ncclcheck.bench.last_words import is_echo, without_frames

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


def test_python_tracebacks_stay() -> None:
    text = 'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\nValueError: #3 is none'
    assert without_frames(text) == text
