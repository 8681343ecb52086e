"""Child process: asks an NCCL library for its version and a unique id, and prints both as JSON after its log.

The library reads the environment once, opens a listener and starts a thread: all of it ends with this process. With a
second argument `hold` the process stops itself instead of ending: the listener stays, and the kernel completes the
handshakes of the callers, which NCCL's thread never sees (it would end at the first that does not speak to it).
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys

MARK = "ncclcheck-answer "


def main() -> None:
    """Print one line: MARK and a JSON object with version, result and id, or with missing and detail.

    `net_plugin` is NCCL_NET_PLUGIN as the library has it after its config files (null: unset).
    """
    answer = _ask(sys.argv[1])
    ctypes.CDLL(None).fflush(None)  # NCCL writes through C's stdout, whose buffer _exit would drop
    sys.stdout.write(f"\n{MARK}{json.dumps(answer)}\n")
    sys.stdout.flush()
    if sys.argv[2:] == ["hold"]:
        os.kill(os.getpid(), signal.SIGSTOP)
    os._exit(0)  # no destructors of a library that may be half initialised


def _ask(path: str) -> dict[str, object]:
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        return {"missing": "error", "detail": f"cannot be loaded: {_of(path, error)}"}
    version, unique_id = ctypes.c_int(0), ctypes.create_string_buffer(128)
    try:
        library.ncclGetVersion(ctypes.byref(version))
        result = library.ncclGetUniqueId(unique_id)
    except AttributeError as error:
        return {"missing": "unsupported", "detail": f"is no NCCL library: {_of(path, error)}"}
    return {
        "version": version.value,
        "result": result,
        "id": unique_id.raw.hex(),
        "error": "" if result == 0 else _last_error(library, result),
        "net_plugin": _environment_variable("NCCL_NET_PLUGIN"),
    }


def _of(path: str, error: Exception) -> str:
    """Return what the loader says, without the name of the file, which is said before it."""
    return str(error).removeprefix(f"{path}: ")


def _environment_variable(name: str) -> str | None:
    """Return what C's getenv says now: NCCL puts its config files' settings there (src/misc/param.cc, setEnvFile)."""
    getenv = ctypes.CDLL(None).getenv
    getenv.restype = ctypes.c_char_p
    value = getenv(name.encode())
    return None if value is None else os.fsdecode(value).encode("utf-8", "replace").decode()


def _last_error(library: ctypes.CDLL, result: int) -> str:
    """Return NCCL's own words for the failure: the last error (from 2.13 on), else the name of the result code."""
    texts = []
    for name, argument in (("ncclGetLastError", None), ("ncclGetErrorString", result)):
        function = getattr(library, name, None)
        if function is not None:
            function.restype = ctypes.c_char_p
            texts.append((function(argument) or b"").decode("utf-8", "replace").strip())
    return next((text for text in texts if text), f"result code {result}")


if __name__ == "__main__":
    main()
