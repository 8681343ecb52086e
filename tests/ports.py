"""Ports for programs that tests start, which bind them some time later."""

from __future__ import annotations

import random
import socket
from contextlib import suppress
from pathlib import Path

_LOWEST, _HIGHEST = 10_000, 32_000


def free_port() -> int:
    """A port that nobody has now, and that the kernel will give to nobody who does not ask for it by number.

    Those come from `ip_local_port_range`: one of them, closed and bound again later, may meanwhile be the near end of
    any connection on this machine.
    """
    try:
        given_by_kernel = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except OSError:
        given_by_kernel = _HIGHEST
    while True:
        port = random.randrange(_LOWEST, max(min(given_by_kernel, _HIGHEST), _LOWEST + 1))  # noqa: S311 (no secret)
        with suppress(OSError), socket.create_server(("", port)):
            return port
