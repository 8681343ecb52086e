"""The event loop of listeners, which prints nothing while the process has no file left for a connection."""

from __future__ import annotations

import asyncio
import errno
from typing import Any

# What asyncio retries by itself when accept(2) fails, with a traceback each time (asyncio/selector_events.py)
_SCARCE = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


def new_event_loop() -> asyncio.AbstractEventLoop:
    """Return an event loop that prints nothing where the process has no file left: `nofile-low` reports the limit."""
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(_handle)
    return loop


def _handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    error = context.get("exception")
    if not isinstance(error, OSError) or error.errno not in _SCARCE:
        loop.default_exception_handler(context)
