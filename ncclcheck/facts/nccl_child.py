"""Child process: asks an NCCL library for its version and a unique id, and prints both as JSON after its log.

The library reads the environment once, opens a listener and starts a thread: all of it ends with this process.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys

MARK = "ncclcheck-answer "


def main() -> None:
    """Print one line: MARK and a JSON object with version, result and id, or with missing and detail."""
    answer = _ask(sys.argv[1])
    ctypes.CDLL(None).fflush(None)  # NCCL writes through C's stdout, whose buffer _exit would drop
    sys.stdout.write(f"\n{MARK}{json.dumps(answer)}\n")
    sys.stdout.flush()
    os._exit(0)  # no destructors of a library that may be half initialised


def _ask(path: str) -> dict[str, object]:
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        return {"missing": "error", "detail": f"cannot be loaded: {error}"}
    version, unique_id = ctypes.c_int(0), ctypes.create_string_buffer(128)
    try:
        library.ncclGetVersion(ctypes.byref(version))
        result = library.ncclGetUniqueId(unique_id)
    except AttributeError as error:
        return {"missing": "unsupported", "detail": f"is no NCCL library: {error}"}
    return {
        "version": version.value,
        "result": result,
        "id": unique_id.raw.hex(),
        "error": "" if result == 0 else _last_error(library, result),
    }


def _last_error(library: ctypes.CDLL, result: int) -> str:
    """NCCL's own words for the failure: the last error (2.13 and later), else the name of the result code."""
    texts = []
    for name, argument in (("ncclGetLastError", None), ("ncclGetErrorString", result)):
        function = getattr(library, name, None)
        if function is not None:
            function.restype = ctypes.c_char_p
            texts.append((function(argument) or b"").decode("utf-8", "replace").strip())
    return next((text for text in texts if text), f"result code {result}")


if __name__ == "__main__":
    main()
