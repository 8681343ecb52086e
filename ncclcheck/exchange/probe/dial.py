"""TCP connects whose outcome is a word: the answer of the kernel, or no answer in time."""

from __future__ import annotations

import errno
import selectors
import socket
from collections.abc import Sequence
from typing import Literal, TypeAlias

from ncclcheck.exchange.deadline import Deadline

DialOutcome: TypeAlias = Literal["connected", "refused", "filtered", "no-route", "error"]

# connect(2), ip(7): which errno stands for what. A REJECT rule with icmp-port-unreachable arrives as ECONNREFUSED,
# with icmp-host-unreachable or -admin-prohibited as EHOSTUNREACH (net/ipv4/icmp.c, icmp_err_convert).
_REFUSED = frozenset({errno.ECONNREFUSED, errno.ECONNRESET})
_NO_ROUTE = frozenset(
    {errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN, errno.ENETDOWN, errno.EADDRNOTAVAIL}
)
_SILENT = frozenset({errno.ETIMEDOUT})
_FINAL = frozenset({"connected", "filtered"})
_NOWHERE: tuple[DialOutcome, str] = ("error", "no address to connect to")
_BEST_FIRST: tuple[DialOutcome, ...] = ("connected", "refused", "filtered", "no-route", "error")


def outcome_of(error_number: int) -> DialOutcome:
    """Return the outcome for the error number of `connect`."""
    if error_number == 0:
        return "connected"
    if error_number in _REFUSED:
        return "refused"
    if error_number in _NO_ROUTE:
        return "no-route"
    return "filtered" if error_number in _SILENT else "error"


def dial(addresses: Sequence[str], port: int, deadline: Deadline) -> tuple[DialOutcome, str]:
    """Return what a client meets that tries the addresses in this order, with the address and the error text.

    A client goes on to the next address where one is refused or has no route, and waits where one does not answer: so
    does torch (torch/csrc/distributed/c10d/socket.cpp, SocketConnectOp), so an address that is silent is "filtered"
    though a later one would connect. All are tried at once. "filtered" means that no answer of any kind arrived by the
    deadline. The connections are closed again.
    """
    outcomes: dict[str, tuple[DialOutcome, str]] = {}
    waiting: dict[int, tuple[str, socket.socket]] = {}  # by file descriptor
    with selectors.DefaultSelector() as selector:
        for address in addresses:
            begun = _begin(address, port)
            if isinstance(begun, socket.socket):
                waiting[begun.fileno()] = (address, begun)
                selector.register(begun, selectors.EVENT_WRITE)
            else:
                outcomes[address] = outcome_of(begun), _text(address, begun)
        while waiting and not _decided(addresses, outcomes):
            ready = selector.select(deadline.left())
            if not ready:
                break
            for key, _ in ready:
                selector.unregister(key.fd)
                address, connecting = waiting.pop(key.fd)
                with connecting:
                    error_number = connecting.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                outcomes[address] = outcome_of(error_number), _text(address, error_number)
        for address, connecting in waiting.values():
            outcomes.setdefault(address, ("filtered", f"{address}: no answer"))
            connecting.close()
    in_order = [outcomes[address] for address in addresses]
    final = [outcome for outcome in in_order if outcome[0] in _FINAL]
    return min(final[:1] or in_order, key=lambda outcome: _BEST_FIRST.index(outcome[0]), default=_NOWHERE)


def _decided(addresses: Sequence[str], outcomes: dict[str, tuple[DialOutcome, str]]) -> bool:
    """Return whether an address connects and no earlier one holds a client up."""
    for address in addresses:
        if address not in outcomes:
            return False
        if outcomes[address][0] in _FINAL:
            return True
    return True


def _begin(address: str, port: int) -> socket.socket | int:
    """Return a socket that is connecting, or the error number (0: connected) where that is decided at once."""
    try:
        family, kind, protocol, _, target = socket.getaddrinfo(
            address, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST
        )[0]
        connecting = socket.socket(family, kind, protocol)
    except OSError as error:
        return error.errno or errno.EINVAL
    connecting.setblocking(False)
    error_number = connecting.connect_ex(target)
    if error_number == errno.EINPROGRESS:
        return connecting
    connecting.close()
    return error_number


def _text(address: str, error_number: int) -> str:
    return (
        f"{address}: connected"
        if error_number == 0
        else f"{address}: {errno.errorcode.get(error_number, '?')}"
    )
