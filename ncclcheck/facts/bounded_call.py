"""Runs a function that may block under a deadline, and turns every way of failing into a Missing."""

from __future__ import annotations

import errno
import threading
import time
from collections.abc import Callable
from typing import Generic, ParamSpec, TypeVar

from ncclcheck.model.fact import Missing

P = ParamSpec("P")
T = TypeVar("T")


class Started(Generic[T]):
    """A function at work in a daemon thread: one that never returns holds up neither its caller nor our exit."""

    def __init__(self, function: Callable[[], T], name: str) -> None:
        self._function = function
        self._name = name
        self._began = time.monotonic()
        self._done = threading.Event()
        self._outcome: T | Missing = Missing("error", f"{name} ended without a result")
        try:
            threading.Thread(target=self._work, name=name, daemon=True).start()
        except RuntimeError as error:  # no further thread allowed (RLIMIT_NPROC, pids cgroup)
            self._outcome = Missing("error", f"{name}: {error}")
            self._done.set()

    def _work(self) -> None:
        try:
            self._outcome = self._function()
        except BaseException as error:  # a SystemExit in a reader must not look like a reader that hangs
            self._outcome = missing_for(error)
        finally:
            self._done.set()

    def result(self, deadline_s: float) -> T | Missing:
        """Return what the function returned, or why there is no value after at most `deadline_s` more seconds."""
        if self._done.wait(max(0.0, deadline_s)):
            return self._outcome
        return Missing("timeout", f"{self._name}: no answer within {time.monotonic() - self._began:.1f} s")


def start(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Started[T]:
    """Let `function` run in a daemon thread; its result is fetched later."""
    return Started(lambda: function(*args, **kwargs), getattr(function, "__name__", "function").strip("_"))


def within(deadline_s: float, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | Missing:
    """Return the function's value, or a Missing: "timeout" after `deadline_s`, else by the kind of its exception."""
    return start(function, *args, **kwargs).result(deadline_s)


def missing_for(error: BaseException, subject: str = "") -> Missing:
    """Return the Missing that says what `error` means for the one who wanted to read `subject`."""
    text = (error.strerror or str(error)) if isinstance(error, OSError) and subject else str(error)
    detail = f"{subject}: {text}" if subject else text
    match error:
        case PermissionError():
            return Missing("denied", detail)
        case FileNotFoundError() | NotADirectoryError() | ProcessLookupError():
            return Missing("absent", detail)
        case TimeoutError():
            return Missing("timeout", detail)
        case OSError(errno=errno.EOPNOTSUPP | errno.ENOSYS | errno.ENOTTY):
            return Missing("unsupported", detail)
        case OSError():
            return Missing("error", detail)
    return Missing("error", f"{subject + ': ' if subject else ''}{type(error).__name__}: {error}")
