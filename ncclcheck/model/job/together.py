"""What the watchers of a job's nodes tell each other: beats of every node, orders of node 0, and stacks as digests."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from ncclcheck.model.job.watched import BlockedLink, Frame, Watch, WatchedRank

MOST_RANKS, MOST_STACKS, MOST_LINKS = 4096, 32, 64  # of one node
ShortText = Annotated[str, Meta(max_length=4096)]


class RankStudy(Struct, frozen=True, forbid_unknown_fields=True):
    """One rank after its stack was read twice. `stack`: the digest of the second, "" where none could be read.

    `moved`: the stack changed, or the rank woke up inside a collective. `call`: in which call it waits.
    """

    rank: int | None
    pid: int
    stack: ShortText = ""
    inside: bool = False
    call: ShortText = ""
    at: Frame | None = None
    moved: bool = False
    computes: bool = False


class NodeStudy(Struct, frozen=True, forbid_unknown_fields=True):
    """The ranks of one node, studied. `stacks`: frames by digest, of a few groups only.

    `ended`: ranks of the present job that ended before. `blocked`: connections that do not get rid of their bytes.
    `advances`: by NCCL's own counts (RAS), ranks of the job launched collectives meanwhile.
    """

    host: ShortText
    ranks: Annotated[tuple[RankStudy, ...], Meta(max_length=MOST_RANKS)]
    world_size: int = 0
    still_s: float = 0.0
    stacks: Annotated[dict[str, tuple[Frame, ...]], Meta(max_length=MOST_STACKS)] = {}
    ended: Annotated[tuple[WatchedRank, ...], Meta(max_length=MOST_RANKS)] = ()
    blocked: Annotated[tuple[BlockedLink, ...], Meta(max_length=MOST_LINKS)] = ()
    remarks: Annotated[tuple[ShortText, ...], Meta(max_length=MOST_RANKS)] = ()
    advances: bool = False


class RankEnd(Struct, frozen=True, forbid_unknown_fields=True):
    """A rank that failed: when, by the clock of its node (Unix time), and how in words."""

    rank: WatchedRank
    at_s: float
    by_signal: bool = False


class Beat(Struct, frozen=True, forbid_unknown_fields=True):
    """What the watcher of a node says every few seconds. `watcher` differs from that of an earlier one on the node.

    `moves_bytes`, `wakes`: did the node's ranks, since the beat before? `studying`: reading stacks wakes them.
    `study` answers the order of the number `studied`. `left`: this was its last one. `port`: where node 0 calls it
    by datagrams while it does not hear it. `interrupted`: a signal to this watcher ends the job of its node.
    """

    host: ShortText
    watcher: ShortText
    number: int
    sent_s: float
    ranks: int = 0
    world_size: int = 0
    moves_bytes: bool = False
    wakes: bool = False
    studying: bool = False
    addresses: Annotated[tuple[ShortText, ...], Meta(max_length=64)] = ()
    standing: Annotated[tuple[WatchedRank, ...], Meta(max_length=MOST_RANKS)] = ()
    ended: Annotated[tuple[RankEnd, ...], Meta(max_length=MOST_RANKS)] = ()
    studied: int = 0
    study: NodeStudy | None = None
    left: bool = False
    port: Annotated[int, Meta(ge=0, le=65535)] = 0
    interrupted: bool = False


class WatchOrder(Struct, frozen=True, forbid_unknown_fields=True):
    """What node 0 says: how often all ranks were to be studied so far, and its last decision with a number."""

    number: int
    study: int = 0
    decided: int = 0
    watch: Watch | None = None
    left: bool = False
