"""Datagrams to every machine that shares a link with this node, and to the hosts that the launcher names.

So a node finds node 0, or another node of the job, where the master's name is of no use to it. Only a node that cannot
join sends them. Addresses need not be right: IPv4's limited broadcast and IPv6's all-nodes group need only the link.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
from collections.abc import Callable, Sequence

from msgspec import Struct

from ncclcheck import timeouts
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.trust.datagrams import LIMIT_BYTES
from ncclcheck.facts.bounded_call import start
from ncclcheck.facts.network.interfaces import addresses_by_interface
from ncclcheck.facts.network.names import resolve

_MOST_INTERFACES = 16  # a Kubernetes worker has one per pod
_MOST_HOSTS = 32
_MOST_ANSWERS = 8  # a stranger may send any number
_EVERYBODY = "255.255.255.255"  # RFC 919: every machine on the link
_EVERY_NODE = "ff02::1"  # RFC 4291: the same for IPv6


class BroadcastCall(Struct, frozen=True):
    """A message to all nodes on the links, and to those hosts. `is_answer`: whether a datagram answers it."""

    message: bytes
    port: int
    hosts: Sequence[str] = ()
    is_answer: Callable[[bytes], bool] = bool


def broadcast(call: BroadcastCall, wait_s: float) -> tuple[tuple[str, bytes], ...]:
    """Send the message everywhere; return who answered within `wait_s`, and what: at most 8 addresses."""
    answered: dict[str, bytes] = {}
    with contextlib.ExitStack() as stack, selectors.DefaultSelector() as selector:
        for sender in _sent(call):
            stack.enter_context(sender)
            selector.register(sender, selectors.EVENT_READ)
        deadline = Deadline(wait_s)
        while selector.get_map() and len(answered) < _MOST_ANSWERS and not deadline.passed:
            for key, _ in selector.select(deadline.left()):
                asked = key.fileobj
                assert isinstance(asked, socket.socket)  # noqa: S101
                with contextlib.suppress(OSError):
                    data, origin = asked.recvfrom(LIMIT_BYTES)
                    if call.is_answer(data):
                        answered.setdefault(str(origin[0]), data)
    return tuple(answered.items())[:_MOST_ANSWERS]


def _sent(call: BroadcastCall) -> list[socket.socket]:
    """Return the sockets through which the message left, one for each interface and family, and for the hosts."""
    senders: list[socket.socket] = []
    for interface in _interfaces():
        for family, everybody in (
            (socket.AF_INET, _EVERYBODY),
            (socket.AF_INET6, f"{_EVERY_NODE}%{interface}"),
        ):
            sender = _sender(family, interface)
            if sender is not None:
                with contextlib.suppress(OSError):
                    sender.sendto(call.message, (everybody, call.port))
                senders.append(sender)
    for address in _addresses(call.hosts):
        sender = _sender(socket.AF_INET6 if ":" in address else socket.AF_INET, "")
        if sender is not None:
            with contextlib.suppress(OSError):
                sender.sendto(call.message, (address, call.port))
            senders.append(sender)
    return senders


def _sender(family: socket.AddressFamily, interface: str) -> socket.socket | None:
    try:
        sender = socket.socket(family, socket.SOCK_DGRAM)
    except OSError:
        return None  # no such family, or no file descriptor left
    sender.setblocking(False)
    with contextlib.suppress(OSError):
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    with contextlib.suppress(
        OSError
    ):  # an old kernel wants a privilege: then the routes choose the interface
        _ = interface and sender.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, interface.encode())
    return sender


def _interfaces() -> list[str]:
    """Return the interfaces but loopback, those with an IPv4 address first."""
    try:
        names = [name for _, name in socket.if_nameindex() if name != "lo"]
        known = addresses_by_interface()
    except Exception:  # psutil raises what it likes
        return []
    has_ipv4 = {
        name for name, addresses in known.items() if any(address.family == "inet" for address in addresses)
    }
    return sorted(names, key=lambda name: name not in has_ipv4)[:_MOST_INTERFACES]


def _addresses(hosts: Sequence[str]) -> list[str]:
    """Return an address of each host that has one soon enough."""
    asked = [start(resolve, host, timeouts.BROADCAST_NAMES_S) for host in hosts[:_MOST_HOSTS]]
    deadline = Deadline(timeouts.BROADCAST_NAMES_S if asked else 0.0)
    found = [lookup.result(deadline.left()) for lookup in asked]
    return [addresses[0] for addresses in found if isinstance(addresses, tuple) and addresses]
