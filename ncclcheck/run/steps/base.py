"""What a step of a run is, and what a participant has at hand while it follows an order."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from msgspec import Struct

from ncclcheck.exchange.announcements import Announced, Announcements
from ncclcheck.exchange.messages import FACTS_LIMIT_BYTES
from ncclcheck.exchange.store.base import Store
from ncclcheck.exchange.store.opening import address_of_ranks
from ncclcheck.facts.network.interfaces import addresses_of
from ncclcheck.model.fact import Missing
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.run.context import Context
from ncclcheck.run.local_node import LocalNode
from ncclcheck.run.options import RunOptions

if TYPE_CHECKING:
    from ncclcheck.run.session import Session

RANKS_UNASKED = 16  # ranks that a node starts without its own launcher, flags or GPUs naming so many
OrderT = TypeVar("OrderT")
AnswerT = TypeVar("AnswerT")
Vouch: TypeAlias = Callable[[Any], str]  # why a verdict is not believed; empty where it is


class Bounds(Struct, frozen=True):
    """What this node itself knows: its ticket, how many ranks it starts at most, and its addresses.

    `announced` tells what the member with a ticket has announced; `look_up` reads that of several. A further rank
    starts one rank at most.
    """

    ticket: int
    most_ranks: int
    addresses: frozenset[str] = frozenset()
    announced: Callable[[int], Announced | None] = lambda _: None
    look_up: Callable[[Collection[int]], None] = lambda _: None


def believes_all(_verdict: Any) -> str:
    """Believe any verdict: nothing is started on it."""
    return ""


class Participant(Struct, frozen=True):
    """A process in its run: the store, its ticket (its number in order of arrival) and the run's nonce.

    `local` is what its node has prepared; None: a further rank of a node. `ranks_store` is set on node 0 where the
    nodes meet elsewhere: the store that the ranks of a benchmark meet in.
    """

    context: Context
    store: Store
    ticket: int
    nonce: str
    local: LocalNode | None = None
    ranks_store: Store | None = None
    vouch: Vouch = believes_all

    @property
    def node(self) -> LocalNode:
        """Return what the node has prepared; only a participant that has it is given orders."""
        assert self.local is not None  # noqa: S101 (follow() asks further ranks nothing)
        return self.local

    @property
    def master_addr(self) -> str:
        """Return where the workers of this process find the store in which the ranks meet."""
        return address_of_ranks(self.store) or self.context.launch.master_addr or "127.0.0.1"

    @property
    def bounds(self) -> Bounds:
        """Return what this process accepts of an order, as its own launcher, flags and hardware say."""
        if self.local is None:
            return Bounds(self.ticket, most_ranks=1)  # itself
        launch, flags, facts = self.context.launch, self.context.options.flags, self.local.facts
        gpus = 0 if isinstance(facts.gpus, Missing) else len(facts.gpus)
        asked = launch.nproc_per_node or 0, flags.nproc_per_node or 0
        most = max(*asked, launch.local_world_size, gpus, RANKS_UNASKED)
        read = Announcements(self.store)
        return Bounds(self.ticket, most, addresses_of(facts.interfaces), read.of, read.look_up)


def nothing_refused(_order: Any, _bounds: Bounds) -> Iterator[str]:
    """Yield nothing: any order of this kind is harmless."""
    yield from ()


class Step(Struct, Generic[OrderT, AnswerT], frozen=True):
    """A step of a run, with both its sides.

    On the coordinator: if the step `applies`, `lead` returns the snapshot with what it brought; it may `ask` all nodes,
    whose answers are waited for `timeout_s` at most. On a participant: `follow` does what the `order` says and returns
    the `answer`, None where there is none, Missing where node 0 was lost meanwhile. `faults` yields why a node refuses
    an order. A step without an order happens on the coordinator alone. `doing` names what a participant does, for
    people: "the connection tests".
    """

    name: str
    timeout_s: float
    applies: Callable[[Session], bool]
    lead: Callable[[Session], Snapshot]
    order: type[OrderT] | None = None
    answer: type[AnswerT] | None = None
    follow: Callable[[Participant, OrderT], AnswerT | Missing | None] | None = None
    faults: Callable[[OrderT, Bounds], Iterator[str]] = nothing_refused
    most_given: Callable[[RunOptions], int] = lambda _: 1  # how often a node's own words ask for it
    limit_bytes: int = FACTS_LIMIT_BYTES  # of an answer
    doing: str = ""
    by_ranks: Callable[[OrderT], Collection[str]] = (
        lambda _: ()
    )  # tickets of further ranks that follow it, too

    @property
    def when(self) -> str:
        """Return when it is, for people: "during the connection tests"."""
        return f"during {self.doing}" if self.doing else "while the nodes joined"
