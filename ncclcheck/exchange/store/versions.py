"""How a TCPStore is made with every torch since 2.2, and which of its errors say something about the network.

A server takes over a socket that already holds the port (`master_listen_fd`), so there is no moment in which another
program may take it. torch has two servers for a TCPStore:

- The older one takes a socket, in every version. It is the default before 2.4.
- The one on libuv is the default since 2.4 and takes a socket since 2.8. From 2.4 to 2.7 it raises NotImplementedError
  and names the older one as the way out.

So the older one serves where libuv's refuses. To close the socket and let libuv bind the port again would be the other
way: then another program, or a connection of ours that draws its port at random, can have it meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# What constructing a store raises for the network's sake. RuntimeError: torch's DistNetworkError, DistStoreError and,
# from 2.4 to 2.6, EADDRINUSE. ValueError, LookupError: pybind11's for sizes that a peer made up.
_OF_THE_MACHINE = (OSError, RuntimeError, MemoryError)
_OF_A_PEER = (*_OF_THE_MACHINE, ValueError, LookupError)


def make_store(tcp_store: Callable[..., Any], host: str, port: int, **options: Any) -> Any:
    """Return `tcp_store(host, port, **options)`, with the older server where libuv's cannot do what `options` ask.

    A server that refuses a socket has not closed it (TCPStore.cpp of 2.4 to 2.7: the constructor raises first).
    """
    try:
        return tcp_store(host, port, **options)
    except RuntimeError as error:
        if "libuv" not in str(error):  # a torch that was built without libuv says so as well
            raise
    return tcp_store(host, port, use_libuv=False, **options)


def is_own_bug(error: Exception, *, serving: bool) -> bool:
    """Return whether the error is a bug of ncclcheck's or its torch's, and says nothing about the network."""
    if isinstance(error, (NotImplementedError, RecursionError)):  # each is a RuntimeError
        return True
    return not isinstance(error, _OF_THE_MACHINE if serving else _OF_A_PEER)
