"""A bug in ncclcheck: the traceback goes to a file, the user gets a sentence."""

from __future__ import annotations

import platform
import tempfile
import time
import traceback
from collections.abc import Iterable
from os import getpid
from pathlib import Path

import ncclcheck


def save_traceback(error: BaseException, directories: Iterable[str | Path] = ()) -> Path | None:
    """Save the traceback in the first of `directories`, `.` and the temporary directory that is writable."""
    name = f"ncclcheck-crash-{time.strftime('%Y%m%d-%H%M%S')}-{getpid()}.txt"
    text = "".join(traceback.format_exception(error))
    header = (
        f"ncclcheck {ncclcheck.__version__}, Python {platform.python_version()}, {platform.platform()}\n\n"
    )
    for directory in (*directories, ".", tempfile.gettempdir()):
        path = Path(directory) / name
        try:
            path.write_text(header + text, encoding="utf-8", errors="backslashreplace")
        except OSError:
            continue
        return path
    return None


def describe(error: BaseException, path: Path | None) -> str:
    """Describe the bug in one line, with the file to attach to an issue."""
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    where = f"the traceback is in {path}" if path else "the traceback could not be saved"
    return f"{what} ({where}; please open an issue and attach it)"
