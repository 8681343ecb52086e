"""Files that the user named: read whole, written whole or not at all, and refused with one sentence."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from ncclcheck.facts.bounded_call import Started, start, within
from ncclcheck.model.errors import UsageError
from ncclcheck.model.fact import Missing
from ncclcheck.timeouts import USER_FILE_S

LIMIT_BYTES = 1 << 30  # the saved run of 16,384 nodes has 830 MB
TEXT_LIMIT_BYTES = 1 << 20  # policies and host files: 4,096 names of 253 characters fit


def read_bytes(file: str, option: str, limit_bytes: int = LIMIT_BYTES) -> bytes:
    """Return the contents. Raises UsageError, naming `option` and the file, where it cannot be read or is too large.

    A mount that hangs, or a file that never ends, is refused after USER_FILE_S.
    """
    return contents(begin_reading(file, option, limit_bytes), file, option)


def begin_reading(file: str, option: str, limit_bytes: int = LIMIT_BYTES) -> Started[bytes | str]:
    """Return the reading of a file, under way: `contents` ends it. It goes on while something else is done."""
    return start(_read, file, option, limit_bytes)


def contents(reading: Started[bytes | str], file: str, option: str) -> bytes:
    """Return the contents that `begin_reading` reads. Raises UsageError as `read_bytes` does."""
    data = reading.result(USER_FILE_S)
    if isinstance(data, str):
        raise UsageError(data)
    if isinstance(data, Missing):
        raise UsageError(f"{option} {file}: cannot be read: {data.detail or data.missing}")
    return data


def _read(file: str, option: str, limit_bytes: int) -> bytes | str:
    """Return the contents, or the sentence that says why not."""
    path = Path(file)
    try:
        if not path.exists():
            return f"{option} {file}: there is no such file"
        if not path.is_file():  # a FIFO or device could keep us waiting for ever
            return f"{option} {file}: not a regular file"
        if (
            path.stat().st_dev == Path("/proc").stat().st_dev
        ):  # /proc/kmsg: read once and gone, then it waits for more
            return f"{option} {file}: not a regular file, but a part of /proc"
        if path.stat().st_size > limit_bytes:  # what is too large is not read
            return _too_large(file, option, limit_bytes)
        with path.open("rb") as stream:
            data = stream.read(limit_bytes + 1)
    except (OSError, ValueError) as error:
        return f"{option} {file}: cannot be read: {_reason(error)}"
    return _too_large(file, option, limit_bytes) if len(data) > limit_bytes else data


def _too_large(file: str, option: str, limit_bytes: int) -> str:
    limit = f"{limit_bytes >> 20} MiB" if limit_bytes >> 20 else f"{limit_bytes} bytes"
    return f"{option} {file}: more than {limit}, which no such file of ncclcheck has"


def refuse_hung(file: str, option: str) -> None:
    """Nothing, if the file or its absence is known in time; else UsageError: the mount that it is on hangs."""
    seen = within(USER_FILE_S, _seen, file)
    if isinstance(seen, Missing):
        raise UsageError(f"{option} {file}: nothing answers there within {USER_FILE_S:g} s: its mount hangs")


def _seen(file: str) -> bool:
    try:
        return os.path.lexists(file) and bool(os.stat(file))  # noqa: PTH116 (what hangs is the call)
    except (OSError, ValueError):
        return False


def read_text(file: str, option: str) -> str:
    """Return the contents as text, without a byte order mark. Raises UsageError if it is not UTF-8, or over 1 MiB."""
    try:
        return read_bytes(file, option, TEXT_LIMIT_BYTES).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{option} {file}: not UTF-8 text: {error.reason} at byte {error.start}") from error


def refuse_unwritable(file: str, option: str) -> None:
    """Nothing, if `file` could be written now; else UsageError. Called before a run, which may take minutes."""
    refuse_hung(str(Path(file).parent), option)
    refuse_hung(file, option)
    path = Path(file)
    try:
        if path.is_dir():
            raise UsageError(f"{option} {file}: this is a directory, expected a file name")
        if not path.parent.is_dir():
            raise UsageError(f"{option} {file}: there is no directory {str(path.parent)!r}: create it first")
        if not os.access(path.parent, os.W_OK | os.X_OK):
            raise UsageError(f"{option} {file}: the directory {str(path.parent)!r} cannot be written to")
    except (OSError, ValueError) as error:
        raise UsageError(f"{option} {file}: cannot be written: {_reason(error)}") from error


def write_atomically(file: str, text: str | Iterable[str], option: str, mode: int | None = None) -> None:
    """`file` holds `text`, or its parts; whoever reads it meanwhile sees the old contents or the new, never a part.

    A link is followed. `mode`: of the file; None: as it was, or as the umask has it. Raises UsageError where it cannot
    be written.
    """
    temporary = None
    parts = (text,) if isinstance(text, str) else text
    try:
        target = Path(file).resolve()
        if target.exists() and not target.is_file():  # /dev/stdout, a FIFO: nothing to replace
            with target.open("w", encoding="utf-8", errors="backslashreplace") as stream:
                stream.writelines(parts)
            return
        with tempfile.NamedTemporaryFile(
            "w",
            encoding="utf-8",
            errors="backslashreplace",
            dir=target.parent,
            prefix=".ncclcheck-",
            delete=False,
        ) as stream:
            temporary = Path(stream.name)
            stream.writelines(parts)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.chmod(_mode(target) if mode is None else mode)
        temporary.replace(target)
        temporary = None
    except OSError as error:
        raise UsageError(f"{option} {file}: cannot be written: {_reason(error)}") from error
    finally:
        if temporary is not None:
            with suppress(OSError):
                temporary.unlink()


def append_text(file: str, text: str, option: str) -> None:
    """`file` ends with `text`. Raises UsageError where it cannot be written."""
    try:
        with Path(file).open("a", encoding="utf-8", errors="backslashreplace") as stream:
            stream.write(text)
    except OSError as error:
        raise UsageError(f"{option} {file}: cannot be written: {_reason(error)}") from error


def _mode(target: Path) -> int:
    """Return the file's mode, or what open(2) would give it: a temporary file is readable by its owner only."""
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0o077)
    os.umask(mask)
    return 0o666 & ~mask


def _reason(error: Exception) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)


def is_folder(file: str) -> bool:
    """Return whether it is a folder; what does not answer in time is none, and refused as a file."""
    return within(USER_FILE_S, os.path.isdir, file) is True
