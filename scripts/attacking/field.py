"""Where an attack takes place, and the list of attacks: each runs until it is killed."""

from __future__ import annotations

import random
import socket
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

PREFIX = "ncclcheck/1//"
TOOL = {"schema_version": "1", "tool_version": "1"}
PORT, THIRD_PORT = 29500, 40099

Attack = Callable[["Field"], None]
ATTACKS: dict[str, Attack] = {}


class Field:
    """Where an attack takes place."""

    def __init__(self, host: str, third: str, folder: Path, nodes: list[str]) -> None:
        self.host, self.third, self.folder, self.nodes = host, third, folder, nodes
        self.port = PORT
        self.random = random.Random(7)  # noqa: S311 (the same attack each time)

    def dial(self, host: str | None = None, port: int | None = None) -> socket.socket:
        """Return a connection to the master port, or elsewhere."""
        return socket.create_connection((host or self.host, port or self.port), 1.0)

    def send(self, data: bytes, *, times: int = 1) -> None:
        """Send the data on a connection of its own."""
        with suppress(OSError), self.dial() as made:
            for _ in range(times):
                made.sendall(data)
            made.settimeout(0.05)
            made.recv(65536)


def attack(function: Attack) -> Attack:
    """Enter the function into the list of attacks."""
    ATTACKS[function.__name__.replace("_", "-")] = function
    return function


def again(function: Callable[[], None], *, threads: int = 4, pause_s: float = 0.0) -> None:
    """Do it again and again, in several threads."""

    def work() -> None:
        while True:
            with suppress(Exception):
                function()
            time.sleep(pause_s)

    for _ in range(threads - 1):
        threading.Thread(target=work, daemon=True).start()
    work()


def datagrams(
    field: Field, make: Callable[[], bytes], pause_s: float = 0.0005, nodes: Sequence[str] = ()
) -> None:
    """Send what `make` gives to the number of the master port over UDP, to node 0 or to each of the nodes in turn."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        while True:
            for host in nodes or (field.host,):
                with suppress(OSError):
                    sender.sendto(make(), (host, field.port))
                time.sleep(pause_s)
