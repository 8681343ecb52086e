"""Reads Xid and SXid errors from the kernel's log: /dev/kmsg, or journalctl where that is not allowed."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeAlias

from ncclcheck import timeouts
from ncclcheck.facts.bounded_call import missing_for
from ncclcheck.facts.child import run_child
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.gpu import GpuLog, LoggedError

_KMSG = Path("/dev/kmsg")
_RECORD_BYTES = 8192  # Linux: CONSOLE_EXT_LOG_MAX; a shorter buffer is refused with EINVAL
_MOST_RECORDS = 200_000
_MOST_BYTES = 64 << 20
_MOST_ERRORS = 200
_TEXT_CHARS = 300
_JOURNAL_LINES = 4000
_JOURNAL = ("journalctl", "-k", "-b", "-q", "--no-pager", "-o", "short-monotonic", "-n", str(_JOURNAL_LINES))
_KERNEL_FACILITY = 0
# NVRM: Xid (PCI:0000:1b:00): 79, pid=..., GPU has fallen off the bus.    (older: "Xid (0000:1b:00): 79")
# nvidia-nvswitch0: SXid (PCI:0000:c4:00.0): 24007, Fatal, Link 12 ...
_ERROR = re.compile(
    r"(?:NVRM: (?P<xid>Xid)|nvidia-nvswitch\d*: (?P<sxid>SXid)) \((?:PCI:)?(?P<pci>[0-9a-fA-F:.]+)\): (?P<number>\d+)\b"
)
# nvidia-nvswitch0: SXid (PCI:0000:c4:00.0): 24007, Severity 1 Engine instance 12 ...    and ..., Data {0x0000...}
_REGISTERS = re.compile(r",? *(?:Severity \d|Data \{)", re.ASCII)
_FATAL = re.compile(r",? *Fatal\b", re.ASCII)
_ADDRESS = re.compile(r"([0-9a-fA-F]{4,8}):([0-9a-fA-F]{2}):([0-9a-fA-F]{2})(?:\.([0-7]))?")
_JOURNAL_LINE = re.compile(r"\[\s*(?P<at>\d+\.\d+)\] \S+ kernel: (?P<text>.*)")

Line: TypeAlias = tuple[float, str]  # seconds since boot, text


def read_gpu_log(
    deadline_s: float = timeouts.GPU_LOG_S, kmsg: Path = _KMSG, journal: tuple[str, ...] = _JOURNAL
) -> Fact[GpuLog]:
    """Return the errors that the log still holds; Missing where no way to read it is allowed to this user.

    A log that may be read and holds no error is an empty list; a journal that shows no kernel line at all is denied.
    """
    deadline = time.monotonic() + deadline_s
    records = _kmsg_records(kmsg, deadline)
    if not isinstance(records, Missing):
        return GpuLog(str(kmsg), logged_errors(kmsg_lines(records), _now()))
    lines = _journal_lines(journal, max(0.1, deadline - time.monotonic()))
    if not isinstance(lines, Missing):
        return GpuLog(" ".join(journal[:3]), logged_errors(lines, _now()))
    return Missing(records.missing, f"{records.detail}; {lines.detail}")


def _now() -> float:
    """Return the clock of the kernel's log: seconds since boot, without the time asleep."""
    return time.clock_gettime(time.CLOCK_MONOTONIC)


def _kmsg_records(path: Path, deadline: float) -> Fact[list[bytes]]:
    """Return all records of the kernel's buffer. Each open has its own position: nothing is taken from others."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        return missing_for(error, str(path))
    records: list[bytes] = []
    size = 0
    try:
        while len(records) < _MOST_RECORDS and size < _MOST_BYTES:
            if time.monotonic() > deadline:
                return Missing("timeout", f"{path}: not read to its end in time")
            try:
                record = os.read(descriptor, _RECORD_BYTES)
            except BlockingIOError:
                break
            except (
                BrokenPipeError
            ):  # this record was overwritten while we read; the next read is of the oldest left
                continue
            if not record:
                break
            records.append(record)
            size += len(record)
    except OSError as error:
        return missing_for(error, str(path))
    finally:
        os.close(descriptor)
    return records


def kmsg_lines(records: Iterable[bytes]) -> Iterator[Line]:
    """Yield the kernel's own lines.

    What programs wrote into the buffer is left out (Documentation/ABI/testing/dev-kmsg).
    """
    for record in records:
        for line in record.decode("utf-8", "replace").splitlines():
            head, semicolon, text = line.partition(";")
            words = head.split(",")
            if not semicolon or len(words) < 3 or not words[0].isdigit() or not words[2].isdigit():  # noqa: PLR2004
                continue
            if int(words[0]) >> 3 == _KERNEL_FACILITY:
                yield int(words[2]) / 1e6, text


def _journal_lines(command: tuple[str, ...], deadline_s: float) -> Fact[list[Line]]:
    result = run_child(command, deadline_s=deadline_s)
    if isinstance(result, Missing):
        return result
    if result.returncode != 0:
        error_text = result.stderr.decode("utf-8", "replace").strip()[-200:]
        return Missing("error", f"{command[0]} ended with {result.returncode}: {error_text}")
    lines = [
        (float(match["at"]), match["text"])
        for text in result.stdout.decode("utf-8", "replace").splitlines()
        if (match := _JOURNAL_LINE.fullmatch(text))
    ]
    if not lines:
        return Missing(
            "denied", f"{' '.join(command[:3])} shows no line of the kernel: not allowed, or not kept"
        )
    return lines


def logged_errors(lines: Iterable[Line], now_s: float) -> tuple[LoggedError, ...]:
    """Return the errors among the lines, one for each kind, number, address and severity, with the newest text.

    The newest first. An NVSwitch error has further lines of the same number with registers, which are no errors.
    """
    found: dict[tuple[str, int, str, bool], LoggedError] = {}
    for at_s, text in lines:
        match = _ERROR.search(text)
        if match is None or (match["sxid"] and _REGISTERS.match(text, match.end())):
            continue
        kind = "Xid" if match["xid"] else "SXid"
        number, pci = int(match["number"][:9]), _address(match["pci"])
        key = (kind, number, pci, bool(match["sxid"]) and _FATAL.match(text, match.end()) is not None)
        times = found[key].times + 1 if key in found else 1
        ago = round(max(0.0, now_s - at_s), 1)
        found[key] = LoggedError(
            "Xid" if match["xid"] else "SXid", number, pci, ago, text[:_TEXT_CHARS], times
        )
    return tuple(sorted(found.values(), key=lambda error: error.seconds_ago)[:_MOST_ERRORS])


def _address(text: str) -> str:
    """Return `0000:1b:00` as /sys writes it, `0000:1b:00.0`; empty where it is none."""
    match = _ADDRESS.fullmatch(text)
    if match is None:
        return ""
    domain, bus, device, function = match.groups()
    return f"{int(domain, 16):04x}:{bus.lower()}:{device.lower()}.{function or 0}"
