"""What makes a forked process a new one: its streams, its place, its environment, and the program it runs.

tests/lab/test_forked.py compares such a process with a new one.
"""

from __future__ import annotations

import ctypes
import importlib
import itertools
import mmap
import os
import runpy
import socket
import sys
import types
from pathlib import Path

# What differs between nodes and tests without a word to the interpreter or to what is imported: all of it is read
# when a command runs. With any other variable a process starts anew, since its import might have read it.
_FREE = frozenset({"HOME", "TMPDIR", "USER", "PATH", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"})
_FREE_PREFIXES = ("NCCL_", "GLOO_", "MASTER_", "NCCLCHECK_")

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

libc = ctypes.CDLL(None, use_errno=True)
libc.sbrk.restype = ctypes.c_void_p
_kept: list[object] = []  # memory that the kernel reads for as long as this process lives


def is_free(name: str) -> bool:
    """Return whether a variable may differ between a process and what it is forked from."""
    return name in _FREE or name.startswith(_FREE_PREFIXES)


def take_descriptors(given: list[int], wanted: list[int]) -> None:
    """Make `given` the descriptors `wanted`, one by one, and close all others."""
    above = max([*given, *wanted]) + 1
    for count, descriptor in enumerate(given):  # first out of each other's way
        os.dup2(descriptor, above + count)
    for count, number in enumerate(wanted):
        os.dup2(above + count, number, inheritable=True)
    edges = [*sorted(wanted), os.sysconf("SC_OPEN_MAX")]
    for low, high in itertools.pairwise(edges):
        os.closerange(low + 1, high)


def enter(namespace: str, name: str, shm: str) -> None:
    """Do what `ip netns exec NAMESPACE unshare --uts` does (iproute2, lib/namespace.c), and what a node adds to it."""
    with Path("/run/netns", namespace).open() as handle:
        _check(libc.setns(handle.fileno(), _CLONE_NEWNET), "setns")
    _check(libc.unshare(_CLONE_NEWNS | _CLONE_NEWUTS), "unshare")
    _mount("", "/", "none", _MS_SLAVE | _MS_REC)
    read_only = 0
    if libc.umount2(b"/sys", _MNT_DETACH) and os.statvfs("/sys").f_flag & os.ST_RDONLY:
        read_only = _MS_RDONLY
    _mount(namespace, "/sys", "sysfs", read_only)
    for file in Path("/etc/netns", namespace).iterdir():
        _mount(str(file), f"/etc/{file.name}", "none", _MS_BIND)
    socket.sethostname(name)
    _mount(shm, "/dev/shm", "none", _MS_BIND)


def _mount(source: str, target: str, kind: str, flags: int) -> None:
    words = [word.encode() for word in (source, target, kind)]
    _check(libc.mount(*words, ctypes.c_ulong(flags), None), f"mount {source} on {target}")


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


def show(argv: list[str], env: dict[str, str]) -> None:
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
        brk=libc.sbrk(0),
        arg_start=start,
        arg_end=end,
        env_start=end,
        env_end=end + len(variables),
        exe_fd=0xFFFFFFFF,  # the program stays
    )
    words = (_PR_SET_MM_MAP, ctypes.addressof(places), ctypes.sizeof(places), 0)
    libc.prctl(_PR_SET_MM, *map(ctypes.c_ulong, words))  # without CONFIG_CHECKPOINT_RESTORE it does nothing


def run(argv: list[str]) -> None:
    """Run `python -m MODULE`, `python -c CODE` or `python FILE`, as `argv` says, as the main program."""
    sys.orig_argv[:] = argv
    for name in [name for name in sys.modules if name.partition(".")[0] == "tests"]:
        del sys.modules[name]
    importlib.invalidate_caches()
    if argv[1] == "-m":
        sys.argv[:] = argv[2:]
        sys.path[:1] = [] if "PYTHONSAFEPATH" in os.environ else [str(Path.cwd())]
        sys.modules.pop(argv[2], None)
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
