"""The workers of a benchmark as forks, too: `python -m ncclcheck.bench.worker` as a forked agent starts it.

Before the agent begins, and has threads, it forks a helper. Where the agent then starts a worker, the helper forks, and
the worker is the agent's own child (CLONE_PARENT), which it watches, signals and waits for as ever.
"""

from __future__ import annotations

import array
import ctypes
import inspect
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.lab.fork_child import is_free, libc, show, take_descriptors

_HELPER_S = 30
_MAX_MESSAGE = 1 << 18
_MAX_DESCRIPTORS = 32
_PIPES = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")  # as `subprocess` calls them
_WORKER = ("-m", "ncclcheck.bench.worker")
_PATH = "PYTHONPATH"  # the agent puts the folder of ncclcheck before it, which is in it already
# What a worker has and its agent has not. The first is read at torch's import, and again below.
_OWN = {"TORCH_CPP_LOG_LEVEL": ("ERROR", "FATAL"), "OMP_NUM_THREADS": ("1",), "PYTHONSAFEPATH": ("1",)}
_PR_GET_TID_ADDRESS = 40  # linux/prctl.h
# linux/sched.h
_CLONE_PARENT, _CLONE_CHILD_CLEARTID, _CLONE_CHILD_SETTID = 0x8000, 0x200000, 0x1000000
_CLONE_NUMBER = {"x86_64": 56, "aarch64": 220}  # of the system call


def begin() -> list[str] | None:
    """Fork the helper. Return None in this process, and in each worker its command line."""
    if os.uname().machine not in _CLONE_NUMBER:
        return None
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    environ = dict(os.environ)
    if os.fork() == 0:
        ours.close()
        return _serve(theirs)
    theirs.close()
    ours.settimeout(_HELPER_S)
    _divert(ours, environ)
    return None


def receive(control: socket.socket) -> tuple[bytes, list[int]]:
    """Return the next message and its descriptors; an empty one at the end."""
    size = array.array("i").itemsize
    message, ancillary, _, _ = control.recvmsg(_MAX_MESSAGE, socket.CMSG_LEN(_MAX_DESCRIPTORS * size))
    descriptors = array.array("i")
    for _, _, data in ancillary:
        descriptors.frombytes(data[: len(data) - len(data) % size])
    return message, list(descriptors)


def _divert(helper: socket.socket, environ: Mapping[str, str]) -> None:
    """Let `subprocess` start workers through the helper, and everything else as ever."""
    original: Callable[..., None] = subprocess.Popen._execute_child  # type: ignore[attr-defined]
    signature = inspect.signature(original)

    def execute(self: Any, *given: Any) -> None:
        how = signature.bind(self, *given).arguments
        if tuple(how["args"]) != (sys.executable, *_WORKER) or not _as_here(how["env"], environ):
            original(self, *given)
            return
        request = {
            "argv": list(how["args"]),
            "env": how["env"],
            "pass_fds": list(how["pass_fds"]),
            "cwd": str(Path.cwd()),
        }
        streams = [how["p2cread"], how["c2pwrite"], how["errwrite"]]
        socket.send_fds(helper, [json.dumps(request).encode()], [*streams, *how["pass_fds"]])
        self.pid = int(helper.recv(64))
        self._child_created = True
        self._close_pipe_fds(*(how[name] for name in _PIPES))

    subprocess.Popen._execute_child = execute  # type: ignore[attr-defined]


def _as_here(env: Mapping[str, str], environ: Mapping[str, str]) -> bool:
    """Return whether a worker's environment differs from the agent's only in what is read when it runs."""
    changed = {name for name in env if env[name] != environ.get(name)} | (environ.keys() - env.keys())
    return all(is_free(name) or env.get(name, "") in _OWN.get(name, ()) for name in changed - {_PATH}) and (
        set(env.get(_PATH, "").split(os.pathsep)) == set(environ.get(_PATH, "").split(os.pathsep))
    )


def _serve(control: socket.socket) -> list[str] | None:
    show(["workers"], {})
    while True:
        message, descriptors = receive(control)
        if not message:
            os._exit(0)
        request = json.loads(message)
        led, leads = os.pipe()
        pid = _fork_sibling()
        if pid == 0:
            os.setsid()
            os.close(leads)
            control.detach()
            return _become(request, descriptors)
        os.close(leads)
        os.read(
            led, 1
        )  # it leads its group, as a new process does whose start has returned, and can be killed with it
        for descriptor in (led, *descriptors):
            os.close(descriptor)
        control.send(str(pid).encode())


def _fork_sibling() -> int:
    """`os.fork()`, but the child's parent is this process' parent (clone(2))."""
    python = ctypes.PyDLL(None, use_errno=True)
    address = ctypes.c_void_p()
    libc.prctl(_PR_GET_TID_ADDRESS, ctypes.byref(address))  # where the C library keeps the thread's id
    flags = _CLONE_PARENT | _CLONE_CHILD_CLEARTID | _CLONE_CHILD_SETTID | signal.SIGCHLD
    machine = os.uname().machine
    none = ctypes.c_void_p()
    places = (
        (address, none) if machine == "x86_64" else (none, address)
    )  # of the thread's id, and of its own area
    python.PyOS_BeforeFork()
    number = ctypes.c_long(_CLONE_NUMBER[machine])
    pid: int = python.syscall(number, ctypes.c_ulong(flags), none, none, *places)
    if pid == 0:
        python.PyOS_AfterFork_Child()
    else:
        python.PyOS_AfterFork_Parent()
    return pid


def _become(request: Mapping[str, Any], descriptors: Sequence[int]) -> list[str]:
    argv: list[str] = request["argv"]
    take_descriptors(list(descriptors), [0, 1, 2, *request["pass_fds"]])
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    show(argv, request["env"])
    _read_log_level()
    return argv


def _read_log_level() -> None:
    """Let torch read TORCH_CPP_LOG_LEVEL again (c10/util/Logging.cpp, c10::initLogging)."""
    import torch

    library = Path(torch.__file__).parent / "lib" / "libc10.so"
    ctypes.CDLL(str(library))._ZN3c1011initLoggingEv()
