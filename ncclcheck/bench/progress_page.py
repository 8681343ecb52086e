"""One page of shared memory per rank: where the rank is, written in a microsecond, readable while it hangs."""

from __future__ import annotations

import mmap
import os
import struct
import time
from typing import Literal, TypeAlias, get_args
from zlib import crc32

from msgspec import Struct

Phase: TypeAlias = Literal[
    "starting",
    "joining",
    "waiting",
    "first-call",
    "warm-up",
    "measuring",
    "agreeing",
    "isolating",
    "leaving",
    "done",
    "failed",
]
ErrorKind: TypeAlias = Literal["none", "communication", "own"]
# What is known of its GPU while a rank waits for it: that it has not come to the call which is enqueued (`behind`), or
# whether it runs a small kernel beside it (`alive`, `silent`: it hangs).
GpuSign: TypeAlias = Literal["", "behind", "alive", "silent"]
GPU_SIGNS: tuple[GpuSign, ...] = get_args(GpuSign)
PHASES: tuple[Phase, ...] = get_args(Phase)
ERROR_KINDS: tuple[ErrorKind, ...] = get_args(ErrorKind)
PAGE_BYTES = 4096
# A writer may lose its core between any two bytes, and struct.pack_into zeroes its target first: a reader would then
# see a rank that never moved, and take it for one that hangs. So writes take turns between two records, each with a
# checksum.
_LAYOUT = struct.Struct("=10q")  # the number of the write, and what it says
_CHECKSUM = struct.Struct("=q")
_RECORD_BYTES = _LAYOUT.size + _CHECKSUM.size
_RECORDS_AT = (0, 96)
_GPU_PCI_AT, _GPU_PCI_BYTES = 192, 32
_TEXT_AT = 256
_TEXT_BYTES = 2048


class Progress(Struct, frozen=True):
    """What the page says. `calls` counts collective calls entered: all ranks make the same calls in the same order."""

    phase: Phase = "starting"
    point: int = 0  # index into ops x sizes of the plan
    iteration: int = 0
    inside: bool = False
    calls: int = 0
    stamp_ns: int = 0  # CLOCK_MONOTONIC of the last change; 0: none yet
    longest_call_ns: int = 0  # of the measured calls of this point so far; 0: none yet
    error_kind: ErrorKind = "none"
    error: str = ""
    gpu: GpuSign = ""
    gpu_pci: str = ""


class ProgressPage:
    """The writing side, in the worker. A class because it is a mapped page with the counters that are written to it."""

    def __init__(self, descriptor: int | None) -> None:
        """Map the page behind `descriptor`; without one, a private page that is not read."""
        self._page = mmap.mmap(-1 if descriptor is None else descriptor, PAGE_BYTES)
        self._phase, self._point, self._iteration, self._calls, self._longest_call_ns = 0, 0, 0, 0, 0
        self._entered_ns = self._stamp_ns = self._writes = 0
        self._gpu: GpuSign = ""
        self.inside = False

    def move(self, phase: Phase, point: int | None = None, iteration: int = 0) -> None:
        """Enter `phase`, outside any call."""
        if point is not None and point != self._point:
            self._point, self._longest_call_ns = point, 0
        self._phase, self._iteration, self.inside = PHASES.index(phase), iteration, False
        self._gpu = ""
        self._write(time.monotonic_ns())

    def enter(self, iteration: int = 0) -> None:
        """Enter the next collective call."""
        self._iteration, self.inside, self._gpu = iteration, True, ""
        self._calls += 1
        self._entered_ns = time.monotonic_ns()
        self._write(self._entered_ns)

    def leave(self, *, measured: bool = True) -> None:
        """Leave the call. One that is not `measured` (a barrier) says nothing about how long calls take."""
        now = time.monotonic_ns()
        self.inside, self._gpu = False, ""
        if measured:
            self._longest_call_ns = max(self._longest_call_ns, now - self._entered_ns)
        self._write(now)

    def fall_behind(self) -> None:
        """Take back `enter`: the host has enqueued the call and does not wait in it, and the GPU has not come to it."""
        self._calls -= 1
        self.inside, self._gpu = False, "behind"
        self._write(time.monotonic_ns())

    def name_gpu(self, pci: str) -> None:
        """Record the PCI address of its GPU."""
        encoded = pci.encode("ascii", "replace")[:_GPU_PCI_BYTES].ljust(_GPU_PCI_BYTES, b"\0")
        self._page[_GPU_PCI_AT : _GPU_PCI_AT + _GPU_PCI_BYTES] = encoded

    def see_gpu(self, sign: GpuSign) -> None:
        """Record what was seen of the GPU, which is no progress."""
        self._gpu = sign
        self._write(self._stamp_ns)

    def fail(self, kind: ErrorKind, text: str) -> None:
        """Record the error; the page still shows where the rank was."""
        encoded = text.encode(errors="replace")[:_TEXT_BYTES]
        struct.pack_into("=q", self._page, _TEXT_AT, len(encoded))
        self._page[_TEXT_AT + 8 : _TEXT_AT + 8 + len(encoded)] = encoded
        self._write(time.monotonic_ns(), ERROR_KINDS.index(kind))

    def _write(self, now_ns: int, error_kind: int = 0) -> None:
        self._stamp_ns = now_ns
        self._writes += 1
        data = _LAYOUT.pack(
            self._writes, self._phase, self._point, self._iteration, self.inside,
            self._calls, now_ns, self._longest_call_ns, error_kind, GPU_SIGNS.index(self._gpu),
        )  # fmt: skip
        start = _RECORDS_AT[self._writes % 2]
        self._page[start : start + _RECORD_BYTES] = data + _CHECKSUM.pack(crc32(data))


def _record(data: bytes, start: int) -> tuple[int, ...] | None:
    """Return what a record says; None where it was never written, or is being written."""
    body = data[start : start + _LAYOUT.size]
    numbers: tuple[int, ...] = _LAYOUT.unpack(body)
    is_whole = _CHECKSUM.unpack_from(data, start + _LAYOUT.size)[0] == crc32(body)
    return numbers if is_whole and numbers[0] > 0 else None


def new_page(name: str) -> int:
    """Return a descriptor of a new page of zeros, in memory only; a child that inherits it shares it."""
    descriptor = os.memfd_create(name, os.MFD_CLOEXEC)
    os.ftruncate(descriptor, PAGE_BYTES)
    return descriptor


def read_page(descriptor: int) -> Progress:
    """Return what the page says: the last write that was whole. One that was never written reads as `starting`."""
    data = os.pread(descriptor, PAGE_BYTES, 0)
    known = max(filter(None, (_record(data, start) for start in _RECORDS_AT)), default=None)
    if known is None:
        return Progress()
    _, phase, point, iteration, inside, calls, stamp_ns, longest_ns, kind, gpu = known
    if not (0 <= phase < len(PHASES) and 0 <= kind < len(ERROR_KINDS) and 0 <= gpu < len(GPU_SIGNS)):
        return Progress()
    length = struct.unpack_from("=q", data, _TEXT_AT)[0]
    text = data[_TEXT_AT + 8 : _TEXT_AT + 8 + max(0, min(length, _TEXT_BYTES))].decode(errors="replace")
    pci = data[_GPU_PCI_AT : _GPU_PCI_AT + _GPU_PCI_BYTES].rstrip(b"\0").decode("ascii", "replace")
    return Progress(
        phase=PHASES[phase],
        point=point,
        iteration=iteration,
        inside=bool(inside),
        calls=calls,
        stamp_ns=stamp_ns,
        longest_call_ns=longest_ns,
        error_kind=ERROR_KINDS[kind],
        error=text,
        gpu=GPU_SIGNS[gpu],
        gpu_pci=pci,
    )
