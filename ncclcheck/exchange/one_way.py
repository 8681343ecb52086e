"""Datagrams from node 0 to a node that it does not hear: if they arrive there, that node's own packets get lost."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable
from contextlib import suppress
from ipaddress import ip_address

_MOST_BYTES = 256
_MOST_READ = 64
_MOST_ADDRESSES = 8


class Listener:
    """Waits for datagrams with `token`, which only node 0 knows. State: the sender and time of the last one."""

    def __init__(self, token: str) -> None:
        self._token = token.encode()
        self._heard: tuple[str, float] | None = None
        self._socket: socket.socket | None = None

    def open(self) -> None:
        """Listen at a free port, if there is one."""
        for family, anywhere in ((socket.AF_INET6, "::"), (socket.AF_INET, "")):
            with suppress(OSError):
                found = socket.socket(family, socket.SOCK_DGRAM)
                found.setblocking(False)
                if family == socket.AF_INET6:
                    found.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
                found.bind((anywhere, 0))
                self._socket = found
                return

    @property
    def port(self) -> int:
        """Return where it listens, 0 where it cannot."""
        return 0 if self._socket is None else int(self._socket.getsockname()[1])

    def heard(self, within_s: float) -> str:
        """Return the sender of a datagram within the last seconds; "" where there was none."""
        with suppress(OSError):  # nothing more to read
            for _ in range(_MOST_READ if self._socket is not None else 0):
                assert self._socket is not None  # noqa: S101
                data, sender = self._socket.recvfrom(_MOST_BYTES)
                if data == self._token:
                    self._heard = str(sender[0]).removeprefix("::ffff:"), time.monotonic()
        if self._heard is None or time.monotonic() - self._heard[1] > within_s:
            return ""
        return self._heard[0]

    def close(self) -> None:
        """Close its port."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def call(addresses: Iterable[str], port: int, token: str) -> None:
    """Send one datagram to each of the first few addresses of a node; whether one arrives only that node knows."""
    known = [address for address in addresses if _is_called(address)]
    for address in known[:_MOST_ADDRESSES]:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as calling:
            calling.setblocking(False)
            calling.sendto(token.encode(), (address, port))


def _is_called(text: str) -> bool:
    """Return whether it is the address of one other machine; never a name, which would have to be looked up."""
    try:
        address = ip_address(text)
    except ValueError:
        return False
    return not (
        address.is_loopback or address.is_link_local or address.is_multicast or address.is_unspecified
    )
