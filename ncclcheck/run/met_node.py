"""A node of a run that meets elsewhere than at the master address: over ssh, or in a shared folder.

The way to the master is taken all the same, since the job will take it: it is proven or its fault is named, but nothing
of the run itself depends on it, except for the ranks of a benchmark.
"""

from __future__ import annotations

from concurrent.futures import Future
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.join.first import confirm_detour
from ncclcheck.exchange.join.knock import FAILED
from ncclcheck.exchange.join.master import find_master
from ncclcheck.exchange.messages import SCHEMA, SMALL_LIMIT_BYTES, Finish, read_message
from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.base import Store
from ncclcheck.exchange.store.opening import first_line, join, loaded_torch, torch_word
from ncclcheck.model.codec import encode
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import MasterPath
from ncclcheck.run.context import CONCLUDE_S, TOOL_VERSION, Context, Seen
from ncclcheck.run.first_node import open_store
from ncclcheck.run.node import LocalSide, arrive, follow, local_side, report_facts, report_rank
from ncclcheck.run.other_node import alone, fetch_documents, lost, say_goodbye, search_of, until_gone

_WAY_S = 10.0  # to a master that is known to be up: long enough to tell filtered from slow
_SHORT_S = 5.0  # to one that is not
_SPEAKS_S = 6.0


class FirstNode(Struct, frozen=True, forbid_unknown_fields=True):
    """Node 0's word about the store at the master address, or the head node's in its place."""

    schema_version: str
    tool_version: str
    serving: bool
    detail: str


def word_of_first_node(store: Store, *, serving: bool, detail: str) -> Missing | None:
    """The others know whether the master address is worth waiting for."""
    return store.set_document(
        keys.FIRST_NODE, encode(FirstNode(SCHEMA, TOOL_VERSION, serving, detail[:1000]))
    )


def as_met_node(context: Context, prepared: Future[LocalSide], store: Store, seen: Seen) -> None:
    """What the leader of the run ordered was done, and its verdict is in `seen`; or what this node saw by itself."""
    seen.prints = False
    nonce = store.wait(keys.SERVING, context.deadline.within(context.options.join_timeout_s))
    if isinstance(nonce, Missing):
        alone(context, prepared, nowhere(context, nonce.detail), seen)
        return
    way, at_master = way_to_master(context, store, nonce)
    is_first = context.launch.node_rank == 0
    seen.stores += [] if at_master is None else [at_master]
    place = arrive(context, store, nonce)
    side = local_side(context, prepared)
    if isinstance(place, Missing):
        lost(context, prepared, way, place, seen)
        return
    report_facts(place, side, way)
    ended = follow(context, replace(place, served=at_master if is_first else None), side)
    if isinstance(ended, Missing):
        lost(context, prepared, way, ended, seen)
        return
    seen.verdict = ended
    alone(context, prepared, way, seen)
    fetch_documents(context, place, seen)
    if at_master is not None and not is_first:
        seen.until_free = partial(until_gone, context, at_master)


def as_met_rank(context: Context, store: Store, seen: Seen) -> None:
    """The same of a further rank of a node, which only tells its environment and waits."""
    seen.prints = False
    rank = context.launch.rank
    nonce = store.wait(keys.SERVING, context.deadline.within(context.options.join_timeout_s))
    place = nonce if isinstance(nonce, Missing) else arrive(context, store, nonce)
    if isinstance(place, Missing):
        seen.verdict = Finish(3, (f"rank {rank} did not meet node 0: {place.detail}",))
        return
    report_rank(context, place)
    ended = follow(context, place, None)
    seen.verdict = (
        ended if isinstance(ended, Finish) else Finish(3, (f"rank {rank} lost node 0 before the verdict",))
    )
    if context.options.applies:
        fetch_documents(context, place, seen)
    else:
        say_goodbye(place)


def way_to_master(context: Context, store: Store, nonce: bytes) -> tuple[MasterPath, Store | None]:
    """This node's way to the master address, and the store there: node 0 serves it, while somebody keeps it."""
    if context.launch.node_rank == 0:
        return _serve(context, store, nonce)
    told = store.wait_document(keys.FIRST_NODE, context.deadline.within(context.options.join_timeout_s))
    try:
        first = None if isinstance(told, Missing) else read_message(told, FirstNode, SMALL_LIMIT_BYTES)
    except DecodeError:
        first = None
    if first is not None and first.detail.startswith(FAILED):
        return nowhere(context, f"node 0 says: {first.detail}"), None
    serving = first is not None and first.serving
    search = replace(search_of(context), serving=serving)
    way = find_master(search, context.deadline.within(_WAY_S if serving else _SHORT_S), context.say)
    return _spoken_to(context, way, nonce) if way.outcome == "answered" else (way, None)


def nowhere(context: Context, detail: str) -> MasterPath:
    """The way of a node that was not told where the run is."""
    launch, unknown = context.launch, Missing("absent", "not tried")
    return MasterPath(
        launch.master_addr or "", launch.master_port, unknown, False, unknown, unknown, "lost", detail
    )


def _serve(context: Context, store: Store, nonce: bytes) -> tuple[MasterPath, Store | None]:
    launch = context.launch
    work = Deadline(context.deadline.left() - min(CONCLUDE_S, context.options.timeout_s / 5))
    try:
        served, way = open_store(context, work, alone=launch.world_size == 1 and launch.nnodes == 1)
    except Exception as error:  # a bug: the others need not wait at the master address
        word_of_first_node(store, serving=False, detail=f"{FAILED}{first_line(error)}")
        raise
    if isinstance(served, Missing):
        word_of_first_node(store, serving=False, detail=served.detail)
        return way, None
    served.set(
        keys.MEETS_ELSEWHERE, b"1"
    )  # before it is told from a foreign one: nobody may wait here for orders
    served.set(keys.SERVING, nonce)
    store.port = served.port
    word_of_first_node(store, serving=True, detail="")
    return confirm_detour(way, context.prefix, nonce, work), served


def _spoken_to(context: Context, way: MasterPath, nonce: bytes) -> tuple[MasterPath, Store | None]:
    """The way, "answered" only if it is this run's node 0 that answers there."""
    failed = loaded_torch(context.deadline)
    if failed is not None:
        return replace(way, outcome=torch_word(failed), detail=failed.detail), None
    patience = context.deadline.within(_SPEAKS_S)
    tcp = join(way.name, way.port, context.prefix, patience)
    if isinstance(tcp, Missing):
        detail = f"something accepts connections there but does not answer as a TCPStore ({tcp.detail})"
        return replace(way, outcome="foreign", detail=detail), None
    if context.launch.shared_store or tcp.wait(keys.SERVING, patience) == nonce:
        return way, tcp
    foreign = "a TCPStore answers there, but of another program or job"
    return replace(way, outcome="foreign", detail=foreign), None
