"""Standard output and standard error: who reads them, and lines of progress."""

from __future__ import annotations

import os
import select
import shutil
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress

from ncclcheck.model.errors import UsageError
from ncclcheck.report.text.plain import plain
from ncclcheck.timeouts import ERROR_LINE_S


def write_out(text: str | Iterable[str]) -> None:
    """`text` is on standard output, or nobody is there to read it (`| head`, `>&-`), which is no error of ours.

    Raises UsageError where it cannot be written (a full disk).
    """
    if sys.stdout is None:
        return
    try:
        for part in (text,) if isinstance(text, str) else text:
            sys.stdout.write(_in_ascii(part) if _is_ascii(sys.stdout.encoding) else part)
        sys.stdout.flush()
    except BrokenPipeError:
        # The interpreter's own flush at its exit must not complain about it either.
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        raise UsageError(f"standard output cannot be written: {error.strerror or error}") from error


def _is_ascii(encoding: str | None) -> bool:
    return (encoding or "").lower().replace("_", "-") in {"ascii", "us-ascii", "ansi-x3.4-1968", "646"}


def _in_ascii(text: str) -> str:
    """Our own one separator that ASCII does not have; what else there is becomes an escape."""
    return text.replace(" · ", " | ")


def write_error(text: str) -> None:
    """One line on standard error, if that can be written to at all."""
    with suppress(OSError, ValueError, AttributeError):
        if _is_taken():
            sys.stderr.write(f"ncclcheck: {plain(text)}\n")
            sys.stderr.flush()


_nobody_reads = threading.Event()  # standard error: a line of progress must not hold up the run


def _is_taken() -> bool:
    """Return whether standard error takes a line without a wait: a pipe is full where its reader takes nothing."""
    poll = select.poll()
    try:
        poll.register(sys.stderr.fileno(), select.POLLOUT)
    except (OSError, ValueError):  # no file: what a test or a library has put in its place
        return True
    wait_s = 0.0 if _nobody_reads.is_set() else ERROR_LINE_S
    if poll.poll(wait_s * 1000):
        _nobody_reads.clear()
        return True
    _nobody_reads.set()
    return False


def write_document_to_error(heading: str, document: str) -> None:
    """Write a line and the document after it to standard error, the last place left; ignore a closed one."""
    write_error(heading)
    with suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(document)
        sys.stderr.flush()


def progress(*, quiet: bool) -> Callable[[str], None]:
    """Return a function that shows a line of progress, or with `quiet` does nothing."""
    return _silence if quiet else write_error


def _silence(text: str) -> None:
    del text


def is_color_wanted() -> bool:
    """Return True on a terminal that shows colours, unless NO_COLOR is set (https://no-color.org)."""
    return _is_terminal() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def screen_width() -> int | None:
    """Columns of the terminal; None where standard output is none, which then gets whole lines."""
    return shutil.get_terminal_size().columns if _is_terminal() else None


def _is_terminal() -> bool:
    return sys.stdout is not None and sys.stdout.isatty()
