"""How node 0 starts: is the master port free, who holds it, and does the master's name lead to this node."""

from __future__ import annotations

import errno
import fcntl
import socket
import struct
from collections.abc import Callable
from typing import TypeAlias

import psutil
from msgspec.structs import replace

from ncclcheck import timeouts
from ncclcheck.exchange.deadline import Deadline, polls
from ncclcheck.exchange.join.master import describe, resolve_master
from ncclcheck.exchange.probe.dial import dial
from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.base import Store
from ncclcheck.exchange.store.opening import limit_packets
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.facts import MasterOutcome, MasterPath
from ncclcheck.model.formats.addresses import is_loopback
from ncclcheck.model.launch import Launch

_SIOCGIFFLAGS, _IFF_UP = 0x8913, 0x1  # linux/sockios.h, linux/if.h
BACKLOG = 2048  # as torch's store has it


Trouble: TypeAlias = tuple[MasterOutcome, str]
Join: TypeAlias = Callable[[str, int, Deadline], "Store | Missing"]


def hold_port(port: int) -> socket.socket | Trouble:
    """Bind the port, on which nothing listens yet; or return why it cannot be bound, and who holds it.

    As TCPStore does it: on all addresses, dual-stack where there is IPv6. It is held until the store takes it over, so
    that no moment is left in which another program, or a child of ours that is just being forked, has it.
    """
    refused: OSError | None = None
    for family, address in ((socket.AF_INET6, "::"), (socket.AF_INET, "0.0.0.0")):  # noqa: S104 (as the job's store will)
        try:
            bound = socket.socket(family, socket.SOCK_STREAM)
        except OSError as error:
            refused = error
            continue
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            limit_packets(bound)
            bound.bind((address, port))
            return bound
        except OSError as error:
            bound.close()
            refused = error
            if error.errno in (errno.EADDRINUSE, errno.EACCES, errno.EPERM):
                break
    return _why_not(refused, port)


def listen(held: socket.socket) -> Trouble | None:
    """Listen on the held port, and try it from this node: TCPStore's server is its own first client."""
    port = held.getsockname()[1]
    if is_loopback_down():
        return "loopback-down", "the interface lo is down, and node 0 reaches its own addresses through it"
    try:
        held.listen(BACKLOG)
    except OSError as error:
        return _why_not(error, port)
    outcome, detail = dial(["127.0.0.1"], port, Deadline(timeouts.OWN_PORT_S))
    if outcome in ("refused", "filtered", "no-route"):
        return outcome, f"not even this node reaches its own port {port} while it listens there ({detail})"
    return None


def is_loopback_down() -> bool:
    """Return whether the interface lo is there and not up (netdevice(7), SIOCGIFFLAGS)."""
    request = struct.pack("16sH14x", b"lo", 0)
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as caller:
            answer = fcntl.ioctl(caller, _SIOCGIFFLAGS, request)
    except OSError:
        return False  # not known
    return not struct.unpack("16sH14x", answer)[1] & _IFF_UP


def _why_not(error: OSError | None, port: int) -> Trouble:
    if error is not None and error.errno in (errno.EACCES, errno.EPERM):
        return "port-denied", f"binding port {port} is not allowed for this user"
    return "port-in-use", holder(port)


def holder(port: int) -> str:
    """Return who listens on the port, as far as this user may know."""
    try:
        for connection in psutil.net_connections(kind="tcp"):
            if connection.status == psutil.CONN_LISTEN and connection.laddr and connection.laddr.port == port:
                if connection.pid is None:
                    return f"a process of another user or namespace holds {connection.laddr.ip}:{port}"
                name = psutil.Process(connection.pid).name()
                return f"{name} (pid {connection.pid}) holds {connection.laddr.ip}:{port}"
    except (psutil.Error, OSError) as error:
        return f"the holder could not be read: {error}"
    return f"something holds port {port}; no listener is visible to this user"


def own_path(launch: Launch, own_addresses: frozenset[str], deadline: Deadline) -> MasterPath:
    """Return what node 0 sees of the master's name; the outcome is "serving" when the name leads to this node."""
    name = launch.master_addr or ""
    addresses = resolve_master(
        name, deadline, lambda _: None
    )  # asked beside the serving, which tells the user
    path = describe(name, launch.master_port, addresses, own_addresses)
    if isinstance(addresses, Missing):
        return path
    if not path.is_local:
        return replace(
            path, outcome="not-first-node", detail=f"{', '.join(addresses)} is no address of this node"
        )
    if launch.nnodes > 1 and any(is_loopback(address) for address in addresses):
        resolved = "is" if [name] == list(addresses) else f"resolves here to {', '.join(addresses)},"
        detail = f"{name} {resolved} a loopback address: other nodes would look for node 0 on themselves"
        return replace(path, outcome="loopback", detail=detail)
    return replace(path, outcome="serving")


def confirm_detour(path: MasterPath, join: Join, nonce: bytes, deadline: Deadline) -> MasterPath:
    """Return the path, "serving" after all if the address leads here though it is not this node's (virtual, NAT).

    Believed only when our own store answers there with this run's nonce.
    """
    addresses: Fact[tuple[str, ...]] = path.addresses
    if path.outcome != "not-first-node" or isinstance(addresses, Missing):
        return path
    patience = deadline.within(timeouts.MASTER_SELF_S)
    outcome, detail = dial(addresses, path.port, patience)
    if outcome != "connected":
        return replace(path, detail=f"{path.detail}, and {detail} on port {path.port}")
    store = join(addresses[0], path.port, patience)
    if not isinstance(store, Missing):
        is_ours = store.get(keys.SERVING) == nonce
        store.close()
        if is_ours:
            return replace(
                path, outcome="serving", detail=f"{path.detail}, but it leads to this node's store"
            )
    return replace(path, detail=f"{path.detail}, and another program answers there")


def is_led_elsewhere(path: MasterPath, join: Join, own_store: Store, deadline: Deadline) -> bool:
    """Return whether another process leads this very job, at the master address that is not this node's.

    Then this process claims node 0's place beside it. It may start later, so it is looked for until the deadline, or
    until another process joins the store that this process serves (`own_store`).
    """
    if path.outcome != "not-first-node" or isinstance(path.addresses, Missing):
        return False
    for _ in polls(deadline):
        if own_store.add(keys.TICKETS, 0) != 0:
            return False
        outcome, _detail = dial(path.addresses, path.port, deadline.within(timeouts.MASTER_SELF_S))
        if outcome != "connected":
            continue
        found = join(path.addresses[0], path.port, deadline)
        if isinstance(found, Missing):
            return False
        serving = found.wait(keys.SERVING, deadline)
        found.close()
        return not isinstance(serving, Missing) and serving != own_store.get(keys.SERVING)
    return False
