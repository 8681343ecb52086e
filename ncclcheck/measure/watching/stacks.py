"""Stacks of ranks: read what py-spy printed, and tell who is inside a collective, and in which."""

from __future__ import annotations

from msgspec import Struct

from ncclcheck.model.codec import decode
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.job.watched import Frame

_LIMIT_BYTES = 4 << 20
_MOST_FRAMES = 60
# Where torch and its friends wait for other ranks. A call of one of these files is one of communication.
_COLLECTIVE_FILES = (
    "torch/distributed/distributed_c10d.py",
    "torch/distributed/nn/functional.py",
    "torch/distributed/_functional_collectives.py",
    "torch/distributed/rendezvous.py",
    "torch/distributed/checkpoint/utils.py",
    "torch/distributed/utils.py",
    "torch/distributed/pipelining/schedules.py",
    "deepspeed/comm/",
    "horovod/torch/",
    "cupy_backends/cuda/libs/nccl",
    "mpi4py/",
)
# These wait for the GPU or for gradients of all ranks: the collective itself was launched before.
_WAITING_FUNCTIONS = frozenset(
    {"_engine_run_backward", "synchronize", "item", "cpu", "wait", "wait_tensor", "_wait_for_work"}
)
_WAITING_FILES = ("torch/autograd/graph.py", "torch/cuda/", "torch/_tensor.py")
_LIBRARIES = ("/site-packages/", "/dist-packages/", "/lib/python", "<frozen ", "<string>", "<__array")


class _SpyFrame(Struct):
    name: str
    filename: str
    line: int


class _SpyThread(Struct):
    thread_name: str | None
    os_thread_id: int | None
    frames: list[_SpyFrame]
    pid: int = 0


def main_stack(text: bytes | str, pid: int) -> tuple[Frame, ...]:
    """Return the frames of the main thread in the JSON of `py-spy dump --json`, the innermost first.

    Raises DecodeError where it is not that, or has no such thread.
    """
    threads = decode(text, list[_SpyThread], limit_bytes=_LIMIT_BYTES)
    for thread in threads:
        if thread.os_thread_id == pid or thread.thread_name == "MainThread":
            return tuple(
                Frame(frame.filename, frame.line, frame.name) for frame in thread.frames[:_MOST_FRAMES]
            )
    raise DecodeError("py-spy printed no main thread")


def is_in_collective(frames: tuple[Frame, ...]) -> bool:
    """Return True if the stack stands in a collective, or in a call that waits for one."""
    for frame in frames:
        if any(part in frame.file for part in _COLLECTIVE_FILES):
            return True
        if not is_library(frame):
            return False
        if frame.function in _WAITING_FUNCTIONS and any(part in frame.file for part in _WAITING_FILES):
            return True
    return False


def is_library(frame: Frame) -> bool:
    """Return True for a file of Python or of an installed package, not of the job itself."""
    return any(part in frame.file for part in _LIBRARIES)


def own_frame(frames: tuple[Frame, ...]) -> Frame | None:
    """Return the innermost call in the job's own code; else the innermost of all; None without frames."""
    return next((frame for frame in frames if not is_library(frame)), frames[0] if frames else None)


def waiting_call(frames: tuple[Frame, ...]) -> str:
    """Return the name of the call that waits for the other ranks, as the job called it; "" outside of one."""
    if not is_in_collective(frames):
        return ""
    name = ""
    for frame in frames:
        if not is_library(frame):
            break
        if not frame.function.endswith("wrapper"):  # the logger around every collective of torch
            name = frame.function
    return name or frames[0].function
