"""Where simulated nodes listen: one port for all of them; the address that was called tells which node was meant."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress

from ncclcheck.exchange.probe.channels import Channels
from ncclcheck.exchange.probe.greeting import LINE_BYTES, ProbeGreeting, answered_by, line_of, read_line
from ncclcheck.exchange.probe.reachability import BLOCK_BYTES, Target
from ncclcheck.exchange.probe.ring import answer_latency
from ncclcheck.model.errors import DecodeError
from scripts.scaling.network import INTERFACE, address_of, rank_at

_LEAST_LINE = 48  # a greeting has a nonce of 32 letters; what follows its line may be data


class SharedListener:
    """Answers as the listeners of real nodes do. State: the tickets of the nodes, and the connections to measure on."""

    def __init__(self) -> None:
        self.nonce = ""  # of the run
        self.ticket_of: dict[int, int] = {}  # node rank -> ticket
        self._channels: dict[int, Channels] = {}  # node rank -> its connections, of those that measure
        self._lock = threading.Lock()
        self._listener = socket.create_server(("", 0), backlog=4096)
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def target(self, node_rank: int) -> Target:
        """Return what that node announces."""
        return Target(INTERFACE, address_of(node_rank), self.port)

    def channels_of(self, node_rank: int) -> Channels:
        """Return the connections to that node on which something is measured."""
        with self._lock:
            if node_rank not in self._channels:
                self._channels[node_rank] = Channels()
                answer_latency(self._channels[node_rank])
            return self._channels[node_rank]

    def _serve(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        rank = rank_at(str(connection.getsockname()[0]))
        with suppress(OSError, DecodeError):
            line = b""
            while not line.endswith(b"\n") and len(line) < LINE_BYTES:
                part = connection.recv(1 if len(line) >= _LEAST_LINE else _LEAST_LINE)
                if not part:
                    return
                line += part
            greeting = read_line(line)
            own_greeting = ProbeGreeting(self.nonce, self.ticket_of[rank])
            connection.sendall(line_of(answered_by(greeting, own_greeting)))
            if greeting.channel:
                self.channels_of(rank).put(greeting.channel, greeting.ticket, connection)
                return
            for size in (greeting.segment_bytes, BLOCK_BYTES):
                _discard(connection, size)
                connection.sendall(b"+")
        connection.close()


def _discard(connection: socket.socket, size: int) -> None:
    room = bytearray(BLOCK_BYTES)
    while size > 0:
        count = connection.recv_into(room, min(size, BLOCK_BYTES))
        if not count:
            raise ConnectionResetError
        size -= count
