"""Waiting for something that a thread or a process does, instead of for a time in which it has probably done it."""

from __future__ import annotations

import time
from collections.abc import Callable

_POLL_S = 0.02


def until(is_so: Callable[[], object], what: str, within_s: float = 60.0) -> None:
    """Return as soon as `is_so()` is true. Fails, naming `what` was waited for, where that takes too long."""
    deadline = time.monotonic() + within_s
    while not is_so():
        assert time.monotonic() < deadline, f"not within {within_s:g} s: {what}"
        time.sleep(_POLL_S)
