"""Name servers of /etc/resolv.conf that do not answer: each look-up waits 5 s for such a one before it asks the next.

They are asked directly, so that a run knows of them before its first look-up, and need not wait as long itself.
"""

from __future__ import annotations

import ipaddress
import os
import secrets
import socket
import struct
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

from ncclcheck import timeouts
from ncclcheck.facts.bounded_call import start
from ncclcheck.facts.text_files import read_text
from ncclcheck.model.fact import Missing

_RESOLV_CONF = Path("/etc/resolv.conf")
_MOST_SERVERS = 3  # resolv.conf(5), MAXNS
_PORT, _ANSWER_BYTES, _LABEL_BYTES = 53, 4096, 63
_OPTIONS = "RES_OPTIONS"


@cache
def silent_servers() -> tuple[str, ...]:
    """Return the name servers that answer no query of this node's own name; looked at once in a process.

    Costs milliseconds where all answer. One that refuses is none: no look-up waits for it.
    """
    text = start(read_text, _RESOLV_CONF).result(timeouts.RESOLVER_FILE_S)
    if isinstance(text, Missing):
        return ()
    servers, domain = _configured(text)
    name = socket.gethostname().rstrip(".")
    query = _query(name if "." in name or not domain else f"{name}.{domain}")
    asked = {server: start(_is_silent, server, query) for server in servers}
    return tuple(
        server for server, asking in asked.items() if asking.result(timeouts.NAME_SERVER_S + 1.0) is True
    )


def hasten_lookups() -> None:
    """Let look-ups of this process wait 1 s, and not 5 s, for a name server that does not answer.

    The C library reads the variable when it looks up the first name; what is started later does not get it.
    """
    before = os.environ.get(_OPTIONS)
    os.environ[_OPTIONS] = f"{before or ''} timeout:1".strip()
    start(_first_lookup).result(timeouts.RESOLVER_LOOK_S)
    if before is None:
        del os.environ[_OPTIONS]
    else:
        os.environ[_OPTIONS] = before


def servers_text(servers: tuple[str, ...]) -> str:
    """Return who does not answer."""
    return f"the name server{'s' if len(servers) > 1 else ''} {' and '.join(servers)}"


def _first_lookup() -> None:
    with suppress(OSError):
        socket.getaddrinfo("localhost", None)


def _configured(text: str) -> tuple[tuple[str, ...], str]:
    """Return the servers that the C library asks by UDP, and the first domain in which it looks for short names."""
    servers, domain = [], ""
    for words in (line.split() for line in text.splitlines()):
        match words:
            case ["nameserver", address, *_] if _is_address(address):
                servers.append(address)
            case ["search" | "domain", first, *_]:
                domain = first.rstrip(".")
            case ["options", *options] if "use-vc" in options:
                return (), ""
            case _:
                pass
    return tuple(servers[:_MOST_SERVERS]), domain


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return False
    return True


def _query(name: str) -> bytes:
    """Return a query for the IPv4 address of the name, recursion desired (RFC 1035 4.1)."""
    labels = [label.encode("ascii", "replace")[:_LABEL_BYTES] for label in name.split(".") if label]
    question = b"".join(bytes([len(label)]) + label for label in labels) + struct.pack(">BHH", 0, 1, 1)
    return secrets.token_bytes(2) + struct.pack(">HHHHH", 0x0100, 1, 0, 0, 0) + question


def _is_silent(server: str, query: bytes) -> bool:
    """Return whether nothing at all comes back from the server; a refusal, of whatever kind, is an answer."""
    end = time.monotonic() + timeouts.NAME_SERVER_S
    try:
        with socket.socket(socket.AF_INET6 if ":" in server else socket.AF_INET, socket.SOCK_DGRAM) as caller:
            caller.settimeout(timeouts.NAME_SERVER_AGAIN_S)
            caller.connect((server, _PORT))
            while time.monotonic() < end:
                caller.send(query)
                with suppress(TimeoutError):
                    while time.monotonic() < end:
                        if caller.recv(_ANSWER_BYTES)[:2] == query[:2]:
                            return False
    except OSError:
        return False  # no look-up waits either, where the kernel says at once that there is no way
    return True
