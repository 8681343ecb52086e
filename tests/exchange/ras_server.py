"""A server that speaks as NCCL's RAS threads do (src/ras/client_support.cc, rasClientEventLoop): for tests."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress


class RasServer:
    """Answers one connection after another; `answers` in turn, the last one again and again."""

    def __init__(self, answers: Sequence[str], json_answers: Sequence[str] | None = None) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listener.getsockname()[1]
        self.commands: list[str] = []
        self._answers, self._json_answers = list(answers), list(json_answers or [])
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with connection:
                self._one(connection)

    def _one(self, connection: socket.socket) -> None:
        is_json = False
        with connection.makefile("rb") as lines:
            for line in lines:
                command = line.decode().strip()
                self.commands.append(command)
                lower = command.lower()
                if lower.startswith("client protocol "):
                    connection.sendall(b"SERVER PROTOCOL 2\n")
                elif lower.startswith("timeout "):
                    connection.sendall(b"OK\n")
                elif lower.startswith("set format ") and self._json_answers:
                    is_json = lower.endswith("json")
                    connection.sendall(b"OK\n")
                elif lower in ("status", "verbose status"):
                    answers = self._json_answers if is_json else self._answers
                    answer = answers.pop(0) if len(answers) > 1 else answers[0]
                    half = len(answer) // 2
                    connection.sendall(answer[:half].encode())
                    connection.sendall(answer[half:].encode())
                    return
                else:
                    connection.sendall(f"ERROR: Unknown command {command}\n".encode())


@contextmanager
def serving(answers: Sequence[str], json_answers: Sequence[str] | None = None) -> Iterator[RasServer]:
    """The server while the block runs; `json_answers` None: an NCCL before 2.28.7."""
    server = RasServer(answers, json_answers)
    try:
        yield server
    finally:
        server.listener.shutdown(socket.SHUT_RDWR)
        server.listener.close()


@contextmanager
def saying(words: bytes, *, closes: bool = True) -> Iterator[int]:
    """A port on which somebody says `words` to whoever connects, and closes or stays silent."""
    listener = socket.create_server(("127.0.0.1", 0))
    connections: list[socket.socket] = []

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            connections.append(connection)
            with suppress(OSError):  # closed meanwhile, at the end of the test
                connection.sendall(words)
                if closes:
                    connection.recv(100)
                    connection.close()

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for connection in connections:
            connection.close()
