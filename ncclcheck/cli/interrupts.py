"""Ctrl-C where something has to be finished first."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Let the block end before the first interrupt counts. A second one ends it: its file may be on a dead mount."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pending: list[int] = []

    def note(number: int, _: object) -> None:
        if pending:
            raise KeyboardInterrupt
        pending.append(number)

    before = {number: signal.getsignal(number) for number in _NUMBERS}
    taken = {number: handler for number, handler in before.items() if callable(handler)}
    for number in taken:
        signal.signal(number, note)
    try:
        yield
    finally:
        for number, handler in taken.items():
            signal.signal(number, handler)
    if pending:
        raise KeyboardInterrupt
