"""Child process: loads each library in a process of its own, and prints all results as JSON."""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from ncclcheck.facts.orphan import die_with_parent

_LIMIT_BYTES = 1 << 16
_NEWEST_API = 32
_LONGEST_NAME = 64
_RTLD_DI_LINKMAP = 2  # dlfcn.h
_NOT_THERE = ": cannot open shared object file: No such file or directory"


def main() -> None:
    """Print one JSON object: the versions of the libraries and the results of the plug-in groups, in order."""
    request = json.loads(sys.argv[1])
    tasks: list[Callable[[], object]] = [
        *(partial(_version, path) for path in request["libraries"]),
        *(partial(_plugins, files, request["first_folders"]) for files in request["plugins"]),
    ]
    answers = _results([_start(task) for task in tasks], request["end"])
    count = len(request["libraries"])
    json.dump({"versions": answers[:count], "plugins": answers[count:]}, sys.stdout)
    sys.stdout.flush()


def _start(task: Callable[[], object]) -> tuple[int, int]:
    """Return a process that does the task; its id, and the pipe to which it writes the result."""
    reading, writing = os.pipe()
    parent = os.getpid()
    pid = os.fork()
    if pid:
        os.close(writing)
        return pid, reading
    die_with_parent(parent)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):  # what a constructor prints is none of our answer
        os.dup2(nowhere, descriptor)
    try:
        os.write(writing, json.dumps(task()).encode())
    finally:
        os._exit(0)  # no destructors of a library that may be half initialised


def _results(started: list[tuple[int, int]], end: float) -> list[object]:
    output: dict[int, bytes] = {pipe: b"" for _, pipe in started}
    waiting = set(output)
    while waiting and (left := end - time.monotonic()) > 0:
        for pipe in select.select(list(waiting), [], [], left)[0]:
            data = os.read(pipe, _LIMIT_BYTES)
            output[pipe] += data
            if not data or len(output[pipe]) > _LIMIT_BYTES:
                waiting.discard(pipe)
    return [_result(pid, output[pipe], late=pipe in waiting) for pid, pipe in started]


def _result(pid: int, output: bytes, *, late: bool) -> object:
    if late:
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    try:
        return json.loads(output)
    except ValueError:
        pass
    if late:
        return _missing("timeout", "did not come to an end while it was loaded")
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        name = signal.strsignal(number) or "?"
        return _missing("error", f"ended its process by signal {number} ({name}) while it was loaded")
    return _missing(
        "error", f"ended its process with {os.waitstatus_to_exitcode(status)} while it was loaded"
    )


def _missing(kind: str, detail: str) -> dict[str, str]:
    return {"missing": kind, "detail": detail}


def _version(path: str) -> object:
    number = ctypes.c_int(0)
    try:
        result = ctypes.CDLL(path).ncclGetVersion(ctypes.byref(number))
    except OSError as error:
        return _missing("error", f"cannot be loaded: {_of(path, error)}")
    except AttributeError as error:
        return _missing("unsupported", f"is no NCCL library: {_of(path, error)}")
    return (
        {"number": number.value} if result == 0 else _missing("error", f"ncclGetVersion failed with {result}")
    )


def _of(path: str, error: Exception) -> str:
    """Return what the loader says, without the name of the file, which is said before it."""
    return str(error).removeprefix(f"{path}: ")


def _plugins(files: list[str], first_folders: list[str]) -> object:
    found: list[dict[str, object]] = []
    for file in files:
        plugin = _plugin(file, first_folders)
        found.append(plugin)
        if isinstance(plugin["path"], str):
            break
    return found


def _plugin(file: str, first_folders: list[str]) -> dict[str, object]:
    in_front = [Path(folder, file) for folder in first_folders if "/" not in file]
    name = next((str(path) for path in in_front if path.is_file()), file)
    try:
        library = ctypes.CDLL(name, mode=os.RTLD_NOW | os.RTLD_LOCAL)
    except OSError as error:
        kind = "absent" if str(error) == name + _NOT_THERE else "error"
        return {"file": file, "path": _missing(kind, str(error))}
    apis, network = _interface(library, "ncclNetPlugin")
    tuner_apis, tuner = _interface(library, "ncclTunerPlugin")
    found = {"file": file, "path": _path(library, name), "apis": apis, "network": network}
    return {**found, "tuner_apis": tuner_apis, "tuner": tuner}


def _interface(library: ctypes.CDLL, prefix: str) -> tuple[list[int], object]:
    """Return the versions of a plug-in interface that the library has, and how it calls itself there."""
    symbols = {number: _address(library, f"{prefix}_v{number}") for number in range(1, _NEWEST_API + 1)}
    apis = [number for number, address in symbols.items() if address]
    if not apis:
        return apis, _missing("absent", f"it has no {prefix}_vN symbol")
    # The first field of ncclNet_vN_t and of ncclTuner_vN_t is `const char* name` in every version.
    pointer = ctypes.c_void_p.from_address(symbols[apis[-1]]).value
    text = ctypes.string_at(pointer, _LONGEST_NAME).partition(b"\0")[0] if pointer else b""
    return apis, text.decode("utf-8", "replace")


def _address(library: ctypes.CDLL, symbol: str) -> int:
    try:
        return ctypes.addressof(ctypes.c_char.in_dll(library, symbol))
    except ValueError:
        return 0


def _path(library: ctypes.CDLL, name: str) -> str:
    """Return where the loader found it: l_name of its link_map (link.h)."""
    entry = ctypes.c_void_p()
    handle = ctypes.c_void_p(library._handle)
    if ctypes.CDLL(None).dlinfo(handle, _RTLD_DI_LINKMAP, ctypes.byref(entry)) != 0 or not entry.value:
        return name
    text = ctypes.c_char_p.from_address(entry.value + ctypes.sizeof(ctypes.c_void_p)).value
    return os.fsdecode(text) if text else name


if __name__ == "__main__":
    main()
