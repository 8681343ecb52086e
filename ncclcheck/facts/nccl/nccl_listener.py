"""The listener that the real library opens with a unique id, kept open while other nodes connect to it."""

from __future__ import annotations

import ipaddress
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from ncclcheck import timeouts
from ncclcheck.facts.bounded_call import missing_for
from ncclcheck.facts.child import (
    ChildResult,
    Ending,
    end_child,
    python_command,
    read_child,
    start_child,
)
from ncclcheck.facts.nccl.nccl_child import MARK
from ncclcheck.facts.nccl.nccl_library import CHILD, Inquiry, talkative, understood
from ncclcheck.facts.text_files import read_number
from ncclcheck.model.fact import Missing

_LISTEN = "0A"  # TCP_LISTEN in /proc/net/tcp
_BACKLOG = 16384  # what NCCL asks for (src/misc/socket.cc, ncclSocketListen)
_LEAST_ROOM = 128  # net.core.somaxconn of old kernels
_IPV6 = 6


class Listening(Struct, frozen=True):
    """Where NCCL listens, as the kernel says, and how many connections wait there without being taken."""

    address: str
    port: int
    room: int


class NcclListener:
    """A child that asks the library, and is stopped then, with the library's listener open. A class: it is a process.

    The kernel kills a child, a stopped one too, whose parent *thread* ended (prctl(2), PR_SET_PDEATHSIG), so a thread
    of this object starts the child and lives until `close`, whichever thread the caller uses.
    """

    def __init__(self) -> None:
        self._ended = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._keeper: threading.Thread | None = None

    def inquire(
        self, library: str, environ: Mapping[str, str], deadline_s: float = timeouts.NCCL_ASK_S
    ) -> Inquiry:
        """Return what the library answers. Where it opened a listener, that stays until `close`. To be called once."""
        child_answer: Future[ChildResult | Missing] = Future()
        self._keeper = threading.Thread(
            target=self._keep,
            args=(library, environ, deadline_s, child_answer),
            name="nccl-listener",
            daemon=True,
        )
        try:
            self._keeper.start()
            result = child_answer.result(deadline_s + timeouts.NCCL_LISTENER_DYING_S)
        except (RuntimeError, FutureTimeout) as error:  # no further thread is allowed, or the start hangs
            self._ended.set()
            result = missing_for(error, CHILD)
        inquiry = understood(library, result)
        if self.listening() is None:
            self._ended.set()
        return inquiry

    def listening(self) -> Listening | None:
        """Return where the library listens; None where it does not, or where no other node could connect."""
        process = self._process
        if process is None or self._ended.is_set() or process.poll() is not None:
            return None
        found = next((socket for socket in listening_sockets(process.pid) if is_callable(socket[0])), None)
        limit = read_number(Path("/proc/sys/net/core/somaxconn"))
        room = _LEAST_ROOM if isinstance(limit, Missing) else min(limit, _BACKLOG)
        return Listening(*found, room) if found else None

    def close(self) -> None:
        """End the listener and its process."""
        self._ended.set()
        if self._keeper is not None and self._keeper.is_alive():
            self._keeper.join(timeouts.NCCL_LISTENER_DYING_S)

    def _keep(
        self,
        library: str,
        environ: Mapping[str, str],
        deadline_s: float,
        child_answer: Future[ChildResult | Missing],
    ) -> None:
        output: dict[int, bytearray] = {}
        ending: Ending = "late"
        try:
            process = start_child(python_command(CHILD, [library, "hold"]), talkative(environ))
        except (OSError, ValueError) as error:
            child_answer.set_result(missing_for(error, CHILD))
            return
        self._process = process
        try:
            ending = read_child(process, output, time.monotonic() + deadline_s, _has_answered)
            if ending == "enough":
                child_answer.set_result(ChildResult(0, *_texts(output)))
                self._ended.wait()
        finally:
            end_child(process)
            if not child_answer.done():
                child_answer.set_result(_failed(process, ending, output, deadline_s))


def _has_answered(stdout: bytes) -> bool:
    _, mark, rest = stdout.rpartition(MARK.encode())
    return bool(mark) and b"\n" in rest


def _failed(
    process: subprocess.Popen[bytes], ending: Ending, output: dict[int, bytearray], deadline_s: float
) -> ChildResult | Missing:
    if ending == "late":
        return Missing("timeout", f"{CHILD}: no answer within {deadline_s:g} s")
    if ending == "too much" or process.returncode is None:
        return Missing("error", f"{CHILD}: wrote too much, or could not be ended")
    return ChildResult(process.returncode, *_texts(output))


def _texts(output: dict[int, bytearray]) -> tuple[bytes, bytes]:
    stdout, stderr = (bytes(text) for text in output.values())
    return stdout, stderr


def listening_sockets(pid: int) -> tuple[tuple[str, int], ...]:
    """Yield address and port of each TCP socket on which the process listens (proc(5)); nothing where denied."""
    inodes = set(_socket_inodes(pid))
    found = []
    for table in ("tcp", "tcp6"):
        try:
            lines = Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:] if inodes else []
        except OSError:
            continue
        for line in lines:
            words = line.split()
            if words[3] == _LISTEN and words[9] in inodes:
                address, _, port = words[1].partition(":")
                found.append((_address(address), int(port, 16)))
    return tuple(found)


def is_callable(address: str) -> bool:
    """Return whether another node can call this address: no loopback, and no fe80, whose scope is local."""
    parsed = ipaddress.ip_address(address)
    return not (
        parsed.is_loopback or parsed.is_unspecified or (parsed.version == _IPV6 and parsed.is_link_local)
    )


def _socket_inodes(pid: int) -> Iterator[str]:
    with suppress(OSError):
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                target = str(descriptor.readlink())
                if target.startswith("socket:["):
                    yield target[len("socket:[") : -1]


def _address(text: str) -> str:
    """Return an address of /proc/net/tcp, which writes 32-bit words, each as the number it is in memory."""
    words = [int(text[start : start + 8], 16).to_bytes(4, sys.byteorder) for start in range(0, len(text), 8)]
    return str(ipaddress.ip_address(b"".join(words)))
