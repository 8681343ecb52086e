"""The event loop prints what is a bug, and not that files are scarce."""

from __future__ import annotations

import errno

import pytest

from ncclcheck.exchange.event_loop import new_event_loop


@pytest.mark.parametrize(
    ("error", "is_printed"),
    [
        (OSError(errno.EMFILE, "Too many open files"), False),
        (ValueError("a bug"), True),
        (OSError(errno.EIO, ""), True),
    ],
)
def test_only_scarce_files_are_not_printed(
    error: Exception, is_printed: bool, caplog: pytest.LogCaptureFixture
) -> None:
    loop = new_event_loop()
    loop.call_exception_handler({"message": "socket.accept() out of system resource", "exception": error})
    loop.close()
    assert bool(caplog.records) is is_printed
