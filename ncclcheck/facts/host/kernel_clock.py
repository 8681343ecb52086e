"""Reads what the kernel says of its clock, whichever daemon keeps it; nothing is set."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

from ncclcheck.facts.bounded_call import missing_for
from ncclcheck.facts.section import Section
from ncclcheck.facts.text_files import read_line
from ncclcheck.model.fact import Fact
from ncclcheck.model.facts import Clock

_STA_UNSYNC = 0x0040  # linux/timex.h
_TIME_ERROR = 5
_SOURCE = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")


class _Timeval(ctypes.Structure):
    _fields_ = (("tv_sec", ctypes.c_long), ("tv_usec", ctypes.c_long))


class _Timex(ctypes.Structure):
    """struct timex (linux/timex.h). `modes` 0: adjtimex only reads, which needs no rights (adjtimex(2))."""

    _fields_ = (
        ("modes", ctypes.c_uint),
        ("offset", ctypes.c_long),
        ("freq", ctypes.c_long),
        ("maxerror", ctypes.c_long),
        ("esterror", ctypes.c_long),
        ("status", ctypes.c_int),
        ("constant", ctypes.c_long),
        ("precision", ctypes.c_long),
        ("tolerance", ctypes.c_long),
        ("time", _Timeval),
        ("tick", ctypes.c_long),
        ("rest", ctypes.c_byte * 256),
    )


def read_clock() -> Fact[Clock]:
    """Return the kernel's own verdict on its clock, and its bound of the error; Missing where the call is not allowed.

    Where another party sets the clock without the kernel's help (a hypervisor's tools), it counts as not synchronised.
    """
    try:
        library = ctypes.CDLL(None, use_errno=True)
        words = _Timex()
        state = library.adjtimex(ctypes.byref(words))
    except (OSError, AttributeError) as error:
        return missing_for(error, "adjtimex")
    if state < 0:
        number = ctypes.get_errno()
        return missing_for(OSError(number, os.strerror(number)), "adjtimex")
    return clock_of(state, words.status, words.maxerror)


def clock_of(state: int, status: int, max_error_us: int) -> Clock:
    """Return what adjtimex(2) answered, as a value."""
    synchronised = not status & _STA_UNSYNC and state != _TIME_ERROR
    return Clock(synchronised, max_error_us, read_line(_SOURCE))


CLOCK = Section({"clock": "adjtimex(2); /sys/devices/system/clocksource"}, read=lambda _: read_clock())
