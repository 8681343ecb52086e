"""Work in a daemon thread, for what may block: its result is waited for with a timeout, or left."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


def in_background(function: Callable[[], T], name: str) -> Future[T]:
    """Run the function in a daemon thread; wait for the result with a timeout, or leave it."""
    future: Future[T] = Future()

    def work() -> None:
        try:
            future.set_result(function())
        except BaseException as error:  # handed on to whoever waits for the result
            future.set_exception(error)

    threading.Thread(target=work, name=name, daemon=True).start()
    return future
