"""Opens the store of a run: the only place that knows which media there are.

A shared folder is opened by `store.shared_folder`, since node 0 has to be found there first.
"""

from __future__ import annotations

import socket
from concurrent.futures import wait

from ncclcheck import timeouts
from ncclcheck.exchange.background import in_background
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.base import Store
from ncclcheck.exchange.store.deadline_store import DeadlineStore, first_line
from ncclcheck.exchange.store.keyed import KeyedStore, join_keyed
from ncclcheck.exchange.store.keyed_server import KeyedServer, Served
from ncclcheck.exchange.store.memory import MemoryBackend
from ncclcheck.exchange.store.pipe import Pipe
from ncclcheck.exchange.store.recording import RecordingStore
from ncclcheck.exchange.store.sealed import SealedStore
from ncclcheck.exchange.store.source_filter import admit_only
from ncclcheck.exchange.store.tcp import (
    hands_over,
    join,
    limit_packets,
    load_torch,
    loaded_torch,
    serve,
    torch_word,
)
from ncclcheck.exchange.trust.handshake import Caller
from ncclcheck.exchange.trust.munge import credential_for
from ncclcheck.exchange.trust.trust import NO_KEY_THERE, Trust
from ncclcheck.model.fact import Missing

__all__ = [
    "address_of_ranks",
    "first_line",
    "hands_over",
    "join",
    "join_launchers",
    "join_run",
    "limit_packets",
    "load_torch",
    "loaded_torch",
    "over_pipe",
    "ranks_mark",
    "serve",
    "serve_with_key",
    "store_of_ranks",
    "torch_word",
    "within_process",
]


def within_process(memory: MemoryBackend, port: int) -> Store:
    """Return the store whose values are in this process; the ranks of a benchmark meet at `port`."""
    return DeadlineStore(memory, port)


def over_pipe(pipe: Pipe, port: int) -> Store:
    """Return the store that the process at the other end of the pipe has."""
    return DeadlineStore(pipe, port)


def serve_with_key(held: socket.socket, trust: Trust, prefix: str, ranks: Deadline | None) -> Store | Missing:
    """Serve a store for those who have the key, on the held socket.

    With `ranks`, torch's store is served beside it until then, at a port of its own, for the ranks of a benchmark.
    """
    assert trust.key is not None  # noqa: S101 (the caller looked)
    meeting = None if ranks is None else serve(0, prefix, ranks)
    if isinstance(meeting, Missing):
        held.close()
        return meeting
    port = held.getsockname()[1] if meeting is None else meeting.port
    if meeting is not None:
        admit_only(port, ())  # the server adds the nodes that prove that they have the key
    served = Served(MemoryBackend(), trust.key, trust, prefix, port, credential_for(trust.key))
    try:
        return KeyedStore(served.memory, port, KeyedServer(held, served), meeting)
    except OSError as error:
        held.close()
        return Missing("error", first_line(error))


def store_of_ranks(store: Store) -> Store | None:
    """Return the store in which the ranks of a benchmark meet, where that is another one that this process serves."""
    return store.ranks if isinstance(store, KeyedStore) else None


def address_of_ranks(store: Store) -> str:
    """Return where the ranks of a run with a key find node 0: by the way on which this node proved its key.

    By another one they would come from an address that node 0 does not know. "": no way is set.
    """
    inner = store.inner if isinstance(store, RecordingStore) else store
    return inner.node_0 if isinstance(inner, KeyedStore) else ""


def ranks_mark(store: Store) -> str:
    """Return how another process changed the store of the ranks, which is served beside this one; "" if not."""
    return store.ranks_mark() if isinstance(store, KeyedStore) else ""


def join_run(address: tuple[str, int], trust: Trust, caller: Caller, deadline: Deadline) -> Store | Missing:
    """Return a client of the store at the address; Missing "denied" where node 0 and this node differ in their key."""
    host, port = address
    if trust.key is not None or trust.asks_munge:
        found = join_keyed(address, trust, caller, deadline)
        if not isinstance(found, Missing) or found.missing != "unsupported":
            return found
    joining = in_background(lambda: join(host, port, caller.prefix, deadline, waits=True), "join")
    wait([joining], 0.0 if trust.key else timeouts.KEYED_ASKED_S)
    if trust.key is None and (not joining.done() or isinstance(joining.result(), Missing)):
        # torch's client may wait long for a store that asks for a key.
        found = join_keyed(address, Trust(), caller, Deadline(timeouts.KEYED_BANNER_S))
        if isinstance(found, Missing) and found.missing == "denied":
            return found
    plain: Store | Missing = joining.result()
    return plain if isinstance(plain, Missing) or trust.key is None else _without_key(plain, trust.key.by)


def join_launchers(
    address: tuple[str, int], trust: Trust, caller: Caller, deadline: Deadline
) -> Store | Missing:
    """Return a client of the store that a launcher serves; in a run with a key its values are authenticated."""
    plain = join(*address, caller.prefix, deadline, waits=caller.node_rank > 0)  # node 0 leads in it, too
    if isinstance(plain, Missing) or trust.key is None:
        return plain
    return SealedStore(plain, trust, trust.key, caller.prefix)


def _without_key(plain: Store, by: str) -> Missing:
    """Return why a store that asks for no key is not joined by a node that has one."""
    is_ours = not isinstance(plain.get(keys.SERVING), Missing)
    plain.close()
    if is_ours:
        return Missing("denied", f"{NO_KEY_THERE}, and the node that calls it has one, from {by}")
    return Missing("error", "it does not ask for the key of this run")
