"""What accepts connections at the master port and could not be joined: node 0 that ended or hangs, or a stranger."""

from __future__ import annotations

import socket

from msgspec.structs import replace

from ncclcheck import timeouts
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.probe.dial import dial
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import MasterPath

_QUESTION = (
    b"ncclcheck\r\n\r\n"  # a server of whatever protocol answers this with an error, or closes the connection
)


def unjoined(path: MasterPath, why: Missing, *, is_alive: bool) -> MasterPath:
    """Return the path with outcome "lost" where node 0 itself ended or hangs there, else "foreign".

    Nothing listens any more: what accepted has ended. Node 0 also holds the port's number over UDP. Where nobody
    refuses datagrams, and nothing at all comes back over TCP, its process is stopped or hangs. `is_alive`: node 0
    answers datagrams, so it is not what is silent.
    """
    addresses = () if isinstance(path.addresses, Missing) else path.addresses
    outcome, _ = dial(addresses, path.port, Deadline(timeouts.UNJOINED_LOOK_S))
    if outcome == "refused":
        ended = "what accepted the connection ended before it answered: nothing listens there any more"
        return replace(path, outcome="lost", detail=ended)
    if not is_alive and not _reacts(addresses, path.port) and not refuses_datagrams(addresses, path.port):
        hangs = (
            "connections are accepted and nothing ever answers: the process that listens is stopped or hangs"
        )
        return replace(path, outcome="lost", detail=hangs)
    detail = f"something accepts connections there but does not answer as a TCPStore ({why.detail})"
    return replace(path, outcome="foreign", detail=detail)


def _reacts(addresses: tuple[str, ...], port: int) -> bool:
    """Return whether a program answers, or closes, a connection on which something is said."""
    for address in addresses:
        try:
            with socket.create_connection((address, port), timeouts.UNJOINED_LOOK_S) as caller:
                caller.sendall(_QUESTION)
                caller.recv(1)
        except (ConnectionResetError, BrokenPipeError):
            return True
        except OSError:
            continue
        return True
    return False


def refuses_datagrams(addresses: tuple[str, ...], port: int) -> bool:
    """Return whether nobody holds the port over UDP: ip(7), an ICMP error arrives as ECONNREFUSED."""
    for address in addresses:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as caller:
                caller.settimeout(timeouts.UNJOINED_DATAGRAM_S)
                caller.connect((address, port))
                caller.send(b"")  # node 0 passes over it
                caller.recv(1)
        except ConnectionRefusedError:
            return True
        except OSError:
            continue
    return False
