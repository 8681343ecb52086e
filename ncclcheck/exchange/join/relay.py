"""Nodes that have joined pass on to node 0 what they hear from nodes that cannot: where only node 0 is out of reach.

A node listens for knocks as node 0 does, and writes those that it hears into the store. It adds its own name, so the
report says by which path a claim arrived.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck import timeouts
from ncclcheck.exchange.join.knock import KnockListener
from ncclcheck.exchange.join.master import MasterSearch
from ncclcheck.exchange.messages import SCHEMA, SMALL_LIMIT_BYTES, TOOL_VERSION, pack, read_message
from ncclcheck.exchange.probe.half_open import half_open
from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.base import Store
from ncclcheck.exchange.trust.trust import Trust
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import MasterPath
from ncclcheck.model.launch import Launch
from ncclcheck.model.snapshot import Knock

_MOST_PASSED_ON = 8  # of one node: a stranger may knock under any number of ranks
_MOST_READ = 256
_LONGEST_NAME = 64


class RelayedKnock(Struct, frozen=True, forbid_unknown_fields=True):
    """A knock that reached another node than node 0."""

    schema_version: str
    tool_version: str
    knock: Knock


def listen_for_others(
    search: MasterSearch, path: MasterPath, join: Callable[[], Store | Missing]
) -> KnockListener:
    """Listen for knocks until it is closed; each is written into node 0's store, over a connection made by `join`.

    `search` says who this node is, and `path` how it reached node 0.
    """
    launch, passed_on = search.launch, 0

    def heard(knock: Knock) -> None:
        nonlocal passed_on
        passed_on += 1
        store = join() if passed_on <= _MOST_PASSED_ON else Missing("denied", "too many")
        if isinstance(store, Missing):
            return
        try:
            number = store.add(keys.RELAYED, 1)
            if not isinstance(number, Missing):
                message = RelayedKnock(SCHEMA, TOOL_VERSION, replace(knock, relay=search.host))
                store.set_document(keys.relayed(number), pack(message))
        finally:
            store.close()

    at = "" if isinstance(path.addresses, Missing) or not path.addresses else path.addresses[0]
    listener = KnockListener(
        path.port, launch.job_id, launch.most_node_ranks, search.trust, relays_for=at, heard=heard
    )
    listener.serving = True
    return listener


class RelayedKnocks:
    """Node 0's view of the knocks that reached it, or others. State: what was read of the store, and when."""

    def __init__(self, own_knocks: Callable[[], dict[int, Knock]], launch: Launch, trust: Trust) -> None:
        self._own, self._launch, self._trust = own_knocks, launch, trust
        self._began = self._looked = time.monotonic()
        self._read: dict[int, Knock] = {}
        self._drawn = 0
        self._unwritten: set[int] = set()  # numbers that were drawn: what stands under them has not been read

    def final(self, store: Store) -> dict[int, Knock]:
        """Return the nodes that said they cannot join, by node rank. What node 0 itself heard comes first."""
        now = time.monotonic()
        is_due = now - self._looked > timeouts.RELAYED_POLL_S and now - self._began > timeouts.RELAYED_AFTER_S
        if is_due:
            self._looked = now
            self._look(store)
        return self._read | self._own()

    def _look(self, store: Store) -> None:
        """Read what is new. A number that was drawn may be written later, or never, where its node was killed."""
        count = store.add(keys.RELAYED, 0)
        if isinstance(count, Missing):
            return
        drawn = max(self._drawn, min(count, _MOST_READ))
        self._unwritten.update(range(self._drawn + 1, drawn + 1))
        self._drawn = drawn
        for number in sorted(self._unwritten):
            data = store.get_document(keys.relayed(number))
            if isinstance(data, Missing) and data.missing == "absent":
                continue
            self._unwritten.discard(number)
            with suppress(DecodeError):
                self._take(data)

    def _take(self, data: bytes | Missing) -> None:
        if isinstance(data, Missing):
            return  # no document of ours
        knock = read_message(data, RelayedKnock, SMALL_LIMIT_BYTES).knock
        rank = self._rank_of(knock)
        if 0 < rank < self._launch.most_node_ranks:
            self._read.setdefault(rank, self._judged(knock, rank))

    def _rank_of(self, knock: Knock) -> int:
        """Return the node's rank; for a node that has none before it joins, the highest one that is still free."""
        if knock.node_rank >= 0:
            return knock.node_rank
        known = self._read | self._own()
        if knock.host in (known_knock.host for known_knock in known.values()):
            return 0  # it has been heard
        return next((rank for rank in range(self._launch.most_node_ranks - 1, 0, -1) if rank not in known), 0)

    def _judged(self, knock: Knock, rank: int) -> Knock:
        """Return the knock with what only node 0 can see: connection requests of that address that arrived here."""
        path = knock.master
        callers = half_open({self._launch.master_port}) if path.outcome == "filtered" else frozenset()
        is_lost = bool(callers & {knock.origin, str(path.source_address)})
        # Without a key a stranger can have written this: it never passes for something that is proven.
        origin = knock.origin or ("" if self._trust.key else "an unknown address")
        path = replace(path, answers_lost=is_lost)
        return Knock(knock.host, rank, path, _printable(origin), _printable(knock.relay) or "another node")


def _printable(text: str) -> str:
    return "".join(letter for letter in text[:_LONGEST_NAME] if letter.isprintable())
