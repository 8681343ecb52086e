"""Connects to a listener of a peer for one purpose; both ends prove that they belong to this run."""

from __future__ import annotations

import socket

from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.probe.channels import reset
from ncclcheck.exchange.probe.dial import outcome_of
from ncclcheck.exchange.probe.greeting import (
    LINE_BYTES,
    ProbeGreeting,
    first_line,
    is_answer,
    line_of,
    read_line,
)
from ncclcheck.exchange.probe.reachability import Target
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.snapshot import ProbeOutcome


class CallError(Exception):
    """The peer was not reached. `outcome` and the text are those of the probe."""

    def __init__(self, outcome: ProbeOutcome, detail: str) -> None:
        super().__init__(detail)
        self.outcome: ProbeOutcome = outcome


def call(target: Target, own_greeting: ProbeGreeting, peer_ticket: int, deadline: Deadline) -> socket.socket:
    """Return a connection to the peer, which has filed it under `own.channel`. Raises CallError."""
    seconds = max(deadline.left(), 0.001)
    try:
        connection = socket.create_connection((target.address, target.port), seconds)
    except TimeoutError as error:
        raise CallError("filtered", f"no answer within {seconds:.1f} s") from error
    except OSError as error:
        word = outcome_of(error.errno or 0)
        raise CallError("error" if word == "connected" else word, str(error)[:200]) from error
    try:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        greeting = first_line(own_greeting)
        connection.sendall(line_of(greeting))
        answer = read_line(_line(connection, deadline))
        if not is_answer(answer, greeting, own_greeting.nonce) or answer.ticket != peer_ticket:
            raise CallError("wrong-peer", f"another node answered at {target.address}")
    except TimeoutError as error:
        reset(connection)
        raise CallError("stalled", f"it accepts, and says nothing for {seconds:.1f} s") from error
    except (OSError, DecodeError) as error:
        reset(connection)
        raise CallError("error", f"no greeting came back ({type(error).__name__})") from error
    except CallError:
        reset(connection)
        raise
    return connection


def _line(connection: socket.socket, deadline: Deadline) -> bytes:
    """Read one line byte by byte: what follows it belongs to the caller of `call`."""
    line = b""
    while not line.endswith(b"\n") and len(line) < LINE_BYTES:
        connection.settimeout(max(deadline.left(), 0.001))
        byte = connection.recv(1)
        if not byte:
            raise ConnectionResetError("closed before a whole line came")
        line += byte
    return line
