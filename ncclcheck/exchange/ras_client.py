"""A client of NCCL's RAS threads: asks the one that listens for the state of its job, by a deadline.

Source: NCCL src/ras/client.cc and client_support.cc, v2.24.3 to v2.30.7: lines that end in a line feed; `CLIENT
PROTOCOL n` is answered by `SERVER PROTOCOL n`, `TIMEOUT n` by OK, `SET FORMAT json` by OK since 2.28.7 and by
`ERROR: Unknown command` before; after `VERBOSE STATUS` comes the answer and the end of the connection.
"""

from __future__ import annotations

import socket

from ncclcheck import timeouts
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.model.errors import NcclcheckError, UsageError

PORT = 28028
PROTOCOL = 2
LONGEST_LINE_BYTES = 1024
LONGEST_ANSWER_BYTES = 64 << 20
_HIGHEST_PORT = 65535
_CHUNK = 1 << 16


class NoAnswerError(NcclcheckError):
    """Nobody answered as NCCL RAS does; the text says why, in one sentence."""


def address_of(text: str) -> tuple[str, int]:
    """Host and port of `HOST[:PORT]`, IPv6 in brackets or without a port. Raises UsageError where it is neither."""
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        port = rest.removeprefix(":")
    elif text.count(":") > 1:
        host, port = text, ""
    else:
        host, _, port = text.partition(":")
    number = int(port) if port.isdecimal() and len(port) <= 5 else 0  # noqa: PLR2004
    if not host or (port and not 0 < number <= _HIGHEST_PORT) or text.endswith(":"):
        raise UsageError(
            f"--ras {text!r}: expected HOST or HOST:PORT (NCCL_RAS_ADDR of the job, localhost:{PORT})"
        )
    return host, number or PORT


def ask(host: str, port: int, deadline: Deadline, *, most_bytes: int = LONGEST_ANSWER_BYTES) -> bytes:
    """Return the status of the job in JSON, or as text of an NCCL before 2.28.7. Raises NoAnswerError."""
    where = f"{host}:{port}"
    try:
        with socket.create_connection(
            (host, port), timeout=max(0.01, deadline.left(timeouts.RAS_CONNECT_S))
        ) as connection:
            return _status(connection, where, deadline, most_bytes)
    except TimeoutError as error:
        raise NoAnswerError(f"NCCL RAS at {where} did not answer in time") from error
    except (OSError, UnicodeError) as error:
        why = error.strerror or str(error) if isinstance(error, OSError) else str(error)
        raise NoAnswerError(
            f"no NCCL RAS at {where}: {why} (NCCL 2.24 and later listen on the job's nodes, at {PORT} or NCCL_RAS_ADDR)"
        ) from error


def _status(connection: socket.socket, where: str, deadline: Deadline, most_bytes: int) -> bytes:
    greeting, rest = _request(connection, f"CLIENT PROTOCOL {PROTOCOL}", b"", deadline)
    if not greeting.upper().startswith(b"SERVER PROTOCOL "):
        raise NoAnswerError(f"what listens at {where} is not NCCL RAS: it says {greeting[:80]!r}")
    _, rest = _request(connection, f"TIMEOUT {timeouts.RAS_GATHER_S}", rest, deadline)
    _, rest = _request(connection, "SET FORMAT json", rest, deadline)
    connection.settimeout(_left(deadline))
    connection.sendall(b"VERBOSE STATUS\n")
    parts, size = [rest], len(rest)
    while chunk := _receive(connection, deadline):
        parts.append(chunk)
        size += len(chunk)
        if size > most_bytes:
            raise NoAnswerError(f"NCCL RAS at {where} answers without end")
    if not size:
        raise NoAnswerError(f"NCCL RAS at {where} closed the connection without an answer")
    return b"".join(parts)


def _request(connection: socket.socket, line: str, rest: bytes, deadline: Deadline) -> tuple[bytes, bytes]:
    """Return the line that answers `line`, and the data that followed it."""
    connection.settimeout(_left(deadline))
    connection.sendall(line.encode() + b"\n")
    while b"\n" not in rest and len(rest) < LONGEST_LINE_BYTES:
        chunk = _receive(connection, deadline)
        if not chunk:
            break
        rest += chunk
    answer, _, rest = rest.partition(b"\n")
    return answer.strip(), rest


def _receive(connection: socket.socket, deadline: Deadline) -> bytes:
    connection.settimeout(_left(deadline))
    return connection.recv(_CHUNK)


def _left(deadline: Deadline) -> float:
    """Seconds left. Raises TimeoutError where none is."""
    if deadline.passed:
        raise TimeoutError
    return max(0.01, deadline.left())
