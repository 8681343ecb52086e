"""Resolves names under a deadline: a name server that does not answer can block a lookup for a minute."""

from __future__ import annotations

import socket
import time
from pathlib import Path

from ncclcheck import timeouts
from ncclcheck.facts.bounded_call import missing_for, start
from ncclcheck.facts.network.name_servers import silent_servers
from ncclcheck.facts.section import Section
from ncclcheck.facts.text_files import readable
from ncclcheck.facts.tree import Folder
from ncclcheck.model.fact import NOT_IN_A_TREE, Fact, Missing
from ncclcheck.model.facts import Names

# What glibc reads for each look-up: nsswitch.conf(5), resolv.conf(5), host.conf(5), hosts(5), gai.conf(5)
_RESOLVER_FILES = ("/etc/hosts", "/etc/resolv.conf", "/etc/nsswitch.conf", "/etc/host.conf", "/etc/gai.conf")
_LONGEST_NAME = 253  # RFC 1035
_NOT_A_NAME = {socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)}


def read_names(deadline_s: float = timeouts.NAMES_S) -> Names:
    """Return the host name, its full form, and the addresses it has here, all within `deadline_s`."""
    hostname = socket.gethostname()
    end = time.monotonic() + deadline_s
    fqdn, addresses = start(socket.getfqdn, hostname), start(_lookup, hostname)
    hanging = hanging_files()
    return Names(
        hostname=readable(hostname),
        addresses=addresses.result(end - time.monotonic()),
        fqdn=fqdn.result(end - time.monotonic()),
        hanging=hanging,
        silent_servers=silent_servers(),
    )


def hanging_files() -> tuple[str, ...]:
    """Return the files that every look-up reads and that hang when read, which no look-up then survives.

    Such are a FIFO in place of the file, or a file on a dead mount. Costs nothing where look-ups work.
    """
    known = start(_lookup, "localhost").result(timeouts.RESOLVER_LOOK_S)
    if not isinstance(known, Missing) or known.missing != "timeout":
        return ()
    reading = [(path, start(_first_byte, path)) for path in _RESOLVER_FILES]
    end = time.monotonic() + timeouts.RESOLVER_FILE_S
    return tuple(path for path, begun in reading if _is_late(begun.result(end - time.monotonic())))


def hangs_text(hanging: tuple[str, ...]) -> str:
    """Return what that means."""
    return f"looking up any name hangs on this node, since reading {' and '.join(hanging)} hangs"


def _first_byte(path: str) -> bytes:
    with Path(path).open("rb", buffering=0) as file:
        return file.read(1)


def _is_late(found: bytes | Missing) -> bool:
    return isinstance(found, Missing) and found.missing == "timeout"


def resolve(name: str, deadline_s: float) -> Fact[tuple[str, ...]]:
    """Return the addresses of `name` in getaddrinfo's order, which is the order clients try them in.

    An IPv6 link-local one keeps its scope ("fe80::1%eth0"), without which nobody can connect to it.
    "absent": the name is not known; "error": no server could say; "timeout": no answer by the deadline.
    """
    answer = start(_lookup_scoped, name).result(deadline_s)
    if isinstance(answer, Missing) and answer.missing == "timeout":
        return Missing("timeout", f"{name}: no answer from name resolution within {deadline_s:g} s")
    return answer


def _lookup(name: str) -> Fact[tuple[str, ...]]:
    """Return the addresses as those of interfaces are written, without a scope."""
    found = _lookup_scoped(name)
    if isinstance(found, Missing):
        return found
    return tuple(dict.fromkeys(address.partition("%")[0] for address in found))


def _lookup_scoped(name: str) -> Fact[tuple[str, ...]]:
    if not name:  # getaddrinfo takes it for the local host
        return Missing("absent", "the name is empty")
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        detail = f"{readable(name)}: {error.strerror}"
        return Missing("absent" if error.errno in _NOT_A_NAME else "error", detail)
    except (OSError, UnicodeError) as error:
        return missing_for(error, readable(name))
    return tuple(dict.fromkeys(_scoped(address) for *_, address in found))


def _scoped(address: tuple[object, ...]) -> str:
    """Return the address of a socket address, with its scope: the interface, or its number if it has no name."""
    host, *rest = address
    match rest:
        case [_port, _flow, int(scope)] if scope:  # ipv6(7)
            pass
        case _:
            return str(host)
    try:
        return f"{host}%{socket.if_indextoname(scope)}"
    except OSError:
        return f"{host}%{scope}"


def _read_tree(here: Folder) -> Fact[Names]:
    """Return the name in /proc/sys/kernel/hostname, which the kernel used, else that in /etc/hostname, unresolved."""
    for path in ("proc/sys/kernel/hostname", "etc/hostname"):
        line = here.line(path)
        if isinstance(line, str) and (name := printable_name(line.splitlines()[0])):
            return Names(name, NOT_IN_A_TREE, NOT_IN_A_TREE)
    return NOT_IN_A_TREE


def printable_name(text: str) -> str:
    """Return the text as a host name, without anything that a terminal would obey."""
    return "".join(letter for letter in readable(text) if letter.isprintable()).strip()[:_LONGEST_NAME]


NAMES = Section(
    {
        "names": "gethostname(2), getaddrinfo(3); of a recorded tree /proc/sys/kernel/hostname or /etc/hostname",
    },
    read=lambda request: read_names(min(timeouts.NAMES_S, request.parts_s)),
    read_tree=_read_tree,
)


def host_name() -> str:
    """Return this machine's name as its kernel has it, without anything a terminal would obey."""
    return "".join(letter for letter in socket.gethostname() if letter.isprintable())[:253] or "localhost"
