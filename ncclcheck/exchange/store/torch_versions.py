"""What differs between versions of torch's TCPStore, from 2.2 on, and which of its errors concern the network.

Node 0 holds its port from the start, so there must be no moment in which another program can take it. torch has two
servers for a TCPStore, and how each gets a port that is held differs:

- Before 2.4 the older server is the default, since 2.8 the one on libuv takes sockets too: the held socket listens, and
  the server takes it over (`master_listen_fd`).
- From 2.4 to 2.7 libuv's server is the default and raises NotImplementedError for a socket. The held socket then stays
  bound without listening, and the server binds the same port beside it: Linux allows that to sockets that both have
  SO_REUSEADDR, which torch's have, while none listens (socket(7)). Programs without that option, and connections that
  draw their port, cannot have it meanwhile. One that has the option could, with every version, before anybody listens.

The older server is no way out where other nodes connect: it waits for the rest of a message that a stranger began, and
that of 2.5 aborts the process where the name server does not answer (c10d/socket.cpp: "failed to format addr").
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

# What the machine or the network can cause where a store is served. RuntimeError: torch's DistNetworkError,
# DistStoreError and, from 2.4 to 2.6, EADDRINUSE.
_OF_THE_MACHINE = (OSError, RuntimeError, MemoryError)
# What neither they nor a peer can cause in any call. (A peer can: sizes that it made up become ValueError, IndexError.)
_OF_A_PROGRAM = (NotImplementedError, RecursionError, TypeError, AttributeError, NameError)
_NOTHING = "ncclcheck: nothing is set"


def takes_socket(tcp_store: Callable[..., Any]) -> bool:
    """Return whether the default server takes over a socket: it is given one that does not exist."""
    try:
        tcp_store("127.0.0.1", 0, is_master=True, wait_for_workers=False, master_listen_fd=-1)
    except NotImplementedError:
        return False
    except Exception:
        return True  # it has looked at the socket
    return True


def make_store(tcp_store: Callable[..., Any], host: str, port: int, **options: Any) -> Any:
    """Return `tcp_store(host, port, **options)`, with the older server where libuv's cannot do what `options` ask.

    The older one serves the workers of one machine, on a socket of the loopback interface. A server that refuses a
    socket has not closed it (TCPStore.cpp of 2.4 to 2.7: the constructor raises first).
    """
    try:
        return tcp_store(host, port, **options)
    except RuntimeError as error:
        if "libuv" not in str(error):  # a torch that was built without libuv says so as well
            raise
    return tcp_store(host, port, use_libuv=False, **options)


def says_port_in_use(error: str) -> bool:
    """Return whether an error of a TCPStore that was to be served says that another program has the port."""
    return "EADDRINUSE" in error or "in use" in error


def read(store: Any, key: str, *, is_awaited: bool = True) -> bytes | None:
    """Return the value; None while it is not set. Never wait for it.

    A key that is not set is not compared where `check` can tell: the server wakes all who wait for it. `is_awaited`
    False: nobody does, and one round trip is enough.
    """
    if is_awaited and hasattr(store, "check") and not store.check([key]):
        return None
    return _compared(store, key)


def _compared(store: Any, key: str) -> bytes | None:
    """Return the value. `get` takes two round trips and waits, `compare_set` takes one.

    It returns what it expected where the key is not set, and stores nothing. (torch 2.2 has no `check`.)
    """
    found = bytes(store.compare_set(key, _NOTHING, _NOTHING))
    return None if found == _NOTHING.encode() else found


def read_all(store: Any, keys: list[str]) -> list[bytes] | None:
    """Return the values; None unless all are set, or where this torch cannot tell."""
    if not (hasattr(store, "check") and hasattr(store, "multi_get")):
        return None
    return [bytes(value) for value in store.multi_get(keys)] if store.check(keys) else None


def set_all(store: Any, values: Mapping[str, bytes]) -> None:
    """Store all these values, in one message where this torch can."""
    if hasattr(store, "multi_set"):
        store.multi_set(list(values), list(values.values()))
        return
    for key, value in values.items():
        store.set(key, value)


def wait_for(store: Any, key: str, seconds: float) -> bytes | None:
    """Return the value as soon as it is set, which the server reports; None if it is not set by the deadline.

    Raises where the server is gone. (For a time of 0 torch waits without end.)
    """
    try:
        store.wait([key], timedelta(milliseconds=max(int(seconds * 1000), 1)))
    except RuntimeError:
        return read(store, key)  # it was late; or the connection is lost, which raises here
    return _compared(store, key)


def is_set(store: Any, key: str) -> bool:
    """Return whether the key is set: an answer comes only after all that was sent before."""
    return bool(store.check([key])) if hasattr(store, "check") else read(store, key) is not None


def is_own_bug(error: Exception, *, serving: bool = False) -> bool:
    """Return whether the error is a bug of ncclcheck's or its torch's, and says nothing about the network.

    `serving`: it was raised where a store is made that this process serves, which no peer takes part in.
    """
    return isinstance(error, _OF_A_PROGRAM) or (serving and not isinstance(error, _OF_THE_MACHINE))
