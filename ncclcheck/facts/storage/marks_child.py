"""Child process: keeps one mark in a folder for a moment, and reports which marks of others it sees there.

It outlives its parent for as long as it takes to remove the mark: when the parent is gone, its standard input ends.
"""

from __future__ import annotations

import json
import os
import select
import sys
import time
from pathlib import Path

from ncclcheck import timeouts

_MARK_BYTES = 200


def main() -> None:
    """Write the mark; look for others when asked for them; remove it at the end of the input or of the time."""
    folder, name, content, seconds = sys.argv[1:5]
    end = time.monotonic() + float(seconds)
    mark = Path(folder) / name
    failed = _write(mark, content)
    _tell({"wrote": failed})
    try:
        line = _line(end)
        if line:
            asked = json.loads(line)
            _tell(
                {"seen": _look(Path(folder), asked["marks"], min(time.monotonic() + asked["seconds"], end))}
            )
            _line(end)
    finally:
        _tell({"left": "" if failed else _removed(mark)})


def _tell(words: dict[str, object]) -> None:
    try:
        sys.stdout.write(json.dumps(words) + "\n")
        sys.stdout.flush()
    except OSError:
        pass  # the parent has ended: there is no reader


def _write(mark: Path, content: str) -> list[str] | None:
    """Write the mark, and return None; else the kind of the failure and its text."""
    try:
        descriptor = os.open(mark, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    except OSError as error:
        return _words(error, mark.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content.encode())
            file.flush()
            os.fsync(descriptor)
    except OSError as error:
        return [*_words(error, mark.parent)[:1], f"{_words(error, mark.parent)[1]}{_removed(mark)}"]
    return None


def _words(error: OSError, place: Path) -> list[str]:
    why = (
        "denied"
        if isinstance(error, PermissionError)
        else "absent"
        if isinstance(error, FileNotFoundError)
        else "error"
    )
    return [why, f"{place}: {error.strerror}"]


def _line(end: float) -> str:
    """Return the next line of the input; empty at its end, or when the time is over."""
    ready, _, _ = select.select([sys.stdin], [], [], max(end - time.monotonic(), 0.0))
    return sys.stdin.readline() if ready else ""


def _look(folder: Path, marks: dict[str, str], until: float) -> list[str]:
    """Return the names of the marks that are there with the content they should have."""
    seen: list[str] = []
    while True:
        seen += [
            name for name, content in marks.items() if name not in seen and _holds(folder / name, content)
        ]
        if len(seen) == len(marks) or time.monotonic() > until:
            return seen
        time.sleep(timeouts.MARKS_POLL_S)


def _holds(mark: Path, content: str) -> bool:
    try:
        with os.fdopen(
            os.open(mark, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb"
        ) as file:
            return file.read(_MARK_BYTES) == content.encode()
    except OSError:
        return False


def _removed(mark: Path) -> str:
    try:
        mark.unlink(missing_ok=True)
    except OSError as error:
        return f"{mark}: {error.strerror}"
    return ""


if __name__ == "__main__":
    main()
