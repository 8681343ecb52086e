"""`python -m tests.lab.fork_server CONTROL_FD`: start Python programs of lab nodes as forks of one process.

Most of what a program of a node costs is `import torch`. This process has imported it, and ncclcheck, once. Each
request on the control socket becomes a child that enters the node's namespaces and then does what a new interpreter
would do: it has its own arguments, environment, folder, streams and session. tests/lab/test_forked.py compares such a
process with a new one.
"""

from __future__ import annotations

import array
import ctypes
import gc
import importlib
import itertools
import json
import mmap
import os
import pkgutil
import runpy
import select
import socket
import sys
import tempfile
import types
from contextlib import suppress
from pathlib import Path
from typing import Any

_CLONE_NEWNS, _CLONE_NEWUTS, _CLONE_NEWNET = 0x20000, 0x4000000, 0x40000000  # sched.h
_MS_RDONLY, _MS_BIND, _MS_REC, _MS_SLAVE, _MNT_DETACH = 1, 0x1000, 0x4000, 0x80000, 2  # sys/mount.h
_PR_SET_MM, _PR_SET_MM_MAP = 35, 14  # linux/prctl.h
# what of a process' memory stays where it is, and its place in /proc/PID/stat (proc_pid_stat(5))
_PLACES = {
    "start_code": 26,
    "end_code": 27,
    "start_data": 45,
    "end_data": 46,
    "start_brk": 47,
    "start_stack": 28,
}
_SHOWN = ("arg_start", "arg_end", "env_start", "env_end")
_MAX_MESSAGE = 1 << 18
_MAX_DESCRIPTORS = 32
_CHILD_MODULES = ("__main__", "_child")  # programs of their own, which nothing imports

_libc = ctypes.CDLL(None, use_errno=True)
_libc.sbrk.restype = ctypes.c_void_p
_kept: list[object] = []  # memory that the kernel reads for as long as this process lives


def main() -> None:
    """Serve until the control socket closes. Each child of a request returns from here as well, and runs it."""
    control = socket.socket(fileno=int(sys.argv[1]))
    _import_all()
    gc.collect()
    gc.freeze()  # the children would copy every page that a collection touches
    control.send(b"ready")
    request = _serve(control)
    if request is not None:
        _run(request["argv"])


def _import_all() -> None:
    import ncclcheck
    from ncclcheck.exchange.store.tcp import load_torch

    load_torch()  # as a command does it: with the log level that torch reads at its import
    for module in pkgutil.walk_packages(ncclcheck.__path__, "ncclcheck."):
        if not module.name.endswith(_CHILD_MODULES):
            importlib.import_module(module.name)
    tempfile.tempdir = None


def _serve(control: socket.socket) -> dict[str, Any] | None:
    """Fork for every request. Return the request in the child, and None at the end of the socket."""
    children: dict[int, tuple[int, int]] = {}  # pidfd -> (pid, descriptor that wants its end)
    while True:
        for ready in select.select([control.fileno(), *children], [], [])[0]:
            if ready != control.fileno():
                pid, report = children.pop(ready)
                _report(report, os.waitpid(pid, 0)[1])
                os.close(ready)
                continue
            message, descriptors = _receive(control)
            if not message:
                return None
            request: dict[str, Any] = json.loads(message)
            pid = os.fork()
            if pid == 0:
                control.detach()
                _become(request, descriptors)
                return request
            pidfd = os.pidfd_open(pid)
            children[pidfd] = pid, descriptors[0]
            for descriptor in descriptors[1:]:
                os.close(descriptor)
            socket.send_fds(control, [str(pid).encode()], [pidfd])


def _receive(control: socket.socket) -> tuple[bytes, list[int]]:
    size = array.array("i").itemsize
    message, ancillary, _, _ = control.recvmsg(_MAX_MESSAGE, socket.CMSG_LEN(_MAX_DESCRIPTORS * size))
    descriptors = array.array("i")
    for _, _, data in ancillary:
        descriptors.frombytes(data[: len(data) - len(data) % size])
    return message, list(descriptors)


def _report(descriptor: int, status: int) -> None:
    with suppress(BrokenPipeError):  # nobody wants to know any more
        os.write(descriptor, status.to_bytes(4, "little"))
    os.close(descriptor)


# in the child


def _become(request: dict[str, Any], descriptors: list[int]) -> None:
    """Take on all that a new process of the node would have."""
    os.setsid()
    _take_descriptors(descriptors[1:], [0, 1, 2, *request["pass_fds"]])
    _enter(request["namespace"], request["name"], request["shm"])
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    _show(request["argv"], request["env"])


def _take_descriptors(given: list[int], wanted: list[int]) -> None:
    """Make `given` the descriptors `wanted`, one by one, and close all others."""
    above = max([*given, *wanted]) + 1
    for count, descriptor in enumerate(given):  # first out of each other's way
        os.dup2(descriptor, above + count)
    for count, number in enumerate(wanted):
        os.dup2(above + count, number, inheritable=True)
    edges = [*sorted(wanted), os.sysconf("SC_OPEN_MAX")]
    for low, high in itertools.pairwise(edges):
        os.closerange(low + 1, high)


def _enter(namespace: str, name: str, shm: str) -> None:
    """Do what `ip netns exec NAMESPACE unshare --uts` does (iproute2, lib/namespace.c), and what a node adds to it."""
    with Path("/run/netns", namespace).open() as handle:
        _check(_libc.setns(handle.fileno(), _CLONE_NEWNET), "setns")
    _check(_libc.unshare(_CLONE_NEWNS | _CLONE_NEWUTS), "unshare")
    _mount("", "/", "none", _MS_SLAVE | _MS_REC)
    read_only = 0
    if _libc.umount2(b"/sys", _MNT_DETACH) and os.statvfs("/sys").f_flag & os.ST_RDONLY:
        read_only = _MS_RDONLY
    _mount(namespace, "/sys", "sysfs", read_only)
    for file in Path("/etc/netns", namespace).iterdir():
        _mount(str(file), f"/etc/{file.name}", "none", _MS_BIND)
    socket.sethostname(name)
    _mount(shm, "/dev/shm", "none", _MS_BIND)


def _mount(source: str, target: str, kind: str, flags: int) -> None:
    words = [word.encode() for word in (source, target, kind)]
    _check(_libc.mount(*words, ctypes.c_ulong(flags), None), f"mount {source} on {target}")


def _check(result: int, what: str) -> None:
    if result:
        error = ctypes.get_errno()
        raise OSError(error, f"{what}: {os.strerror(error)}")


class _Map(ctypes.Structure):
    """`struct prctl_mm_map` (linux/prctl.h)."""

    _fields_ = (
        *(
            (name, ctypes.c_uint64)
            for name in ("start_code", "end_code", "start_data", "end_data", "start_brk")
        ),
        *((name, ctypes.c_uint64) for name in ("brk", "start_stack", *_SHOWN)),
        ("auxv", ctypes.c_void_p),
        ("auxv_size", ctypes.c_uint32),
        ("exe_fd", ctypes.c_uint32),
    )


def _show(argv: list[str], env: dict[str, str]) -> None:
    """Make /proc/self/cmdline and /proc/self/environ those of a new process with these words and variables.

    All of the map at once, since the single calls want a capability (kernel/sys.c, prctl_set_mm).
    """
    arguments = b"".join(os.fsencode(word) + b"\0" for word in argv)
    variables = b"".join(os.fsencode(f"{name}={value}") + b"\0" for name, value in env.items())
    memory = mmap.mmap(-1, len(arguments) + len(variables) + 1, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.write(arguments + variables)
    _kept.append(memory)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    stat = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    end = start + len(arguments)
    places = _Map(
        **{name: int(stat[number - 3]) for name, number in _PLACES.items()},
        brk=_libc.sbrk(0),
        arg_start=start,
        arg_end=end,
        env_start=end,
        env_end=end + len(variables),
        exe_fd=0xFFFFFFFF,  # the program stays
    )
    words = (_PR_SET_MM_MAP, ctypes.addressof(places), ctypes.sizeof(places), 0)
    _libc.prctl(_PR_SET_MM, *map(ctypes.c_ulong, words))  # without CONFIG_CHECKPOINT_RESTORE it does nothing


def _run(argv: list[str]) -> None:
    """Run `python -m MODULE`, `python -c CODE` or `python FILE`, as `argv` says, as the main program."""
    sys.orig_argv[:] = argv
    for name in [name for name in sys.modules if name.partition(".")[0] == "tests"]:
        del sys.modules[name]
    importlib.invalidate_caches()
    if argv[1] == "-m":
        sys.argv[:] = argv[2:]
        sys.path[0] = str(Path.cwd())
        runpy.run_module(argv[2], run_name="__main__", alter_sys=True)
    elif argv[1] == "-c":
        sys.argv[:] = ["-c", *argv[3:]]
        sys.path[0] = ""
        sys.modules["__main__"] = main_module = types.ModuleType("__main__")
        main_module.__annotations__ = {}
        exec(compile(argv[2], "<string>", "exec"), main_module.__dict__)  # noqa: S102 (what `python -c` does)
    else:
        sys.argv[:] = argv[1:]
        sys.path[0] = str(Path(argv[1]).resolve().parent)
        runpy.run_path(argv[1], run_name="__main__")


if __name__ == "__main__":
    main()
