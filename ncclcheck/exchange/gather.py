"""Node 0 gathers: who came, and what each of them answered, with an end to every wait."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection

from msgspec import Struct

from ncclcheck import timeouts
from ncclcheck.exchange.deadline import Deadline, polls
from ncclcheck.exchange.messages import SMALL_LIMIT_BYTES, Hello, read_message
from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.base import Store
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.fact import Missing
from ncclcheck.model.launch import Launch

MOST_PER_PROCESS = 8  # tickets read per expected process: a counter that says more was tampered with
MOST_SHOWN = 8


class Arrivals(Struct, frozen=True):
    """Who came by the deadline: hellos by ticket, and the tickets whose hello was refused, with the reason."""

    hellos: dict[int, Hello]
    refused: dict[int, str]
    waited_s: float


def gather_hellos(
    store: Store,
    launch: Launch,
    given_up: Callable[[], Collection[int]],
    deadline: Deadline,
    say: Callable[[str], None],
) -> Arrivals:
    """Wait until every expected process has come, or it is certain that the missing ones will not.

    Certain: each missing node (rank) is known to have given up; or as many processes came as were expected, with
    ranks that clash, and no other came for a while.
    """
    started = time.monotonic()
    hellos: dict[int, Hello] = {}
    refused: dict[int, str] = {}
    last_arrival, said = started, 0
    for _ in polls(deadline):
        if _read_new(store, launch, hellos, refused):
            last_arrival = time.monotonic()
        missing = _missing_nodes(hellos.values(), launch)
        quiet_s = time.monotonic() - last_arrival
        quiet = quiet_s > timeouts.WRONG_NODES_QUIET_S
        arrived = len(hellos) + len(refused)
        if not missing and (arrived >= launch.world_size or quiet_s > timeouts.RANKS_QUIET_S):
            break
        if missing and missing <= set(given_up()):
            break
        if missing and arrived >= launch.world_size and quiet:
            break
        if store.lost is not None:
            break
        if time.monotonic() - started > 3.0 * (said + 1):
            said += 1
            ranks = f"{launch.world_size - arrived} further processes of the nodes that came"
            whom = f"node rank {_few(missing)} of {launch.nnodes}" if missing else ranks
            say(f"waiting for {whom} ({deadline.left():.0f} s left)")
    return Arrivals(hellos, refused, round(time.monotonic() - started, 1))


def late_hellos(store: Store, launch: Launch, arrivals: Arrivals) -> tuple[Hello, ...]:
    """Those who came after `arrivals` was complete: nobody asked them anything, so nothing is known of them."""
    hellos, refused = dict(arrivals.hellos), dict(arrivals.refused)
    _read_new(store, launch, hellos, refused)
    return tuple(hello for ticket, hello in hellos.items() if ticket not in arrivals.hellos)


def drawn_tickets(store: Store, launch: Launch) -> Collection[int]:
    """Return the tickets drawn so far; of more than a job of this size can draw, the first ones."""
    count = store.add(keys.TICKETS, 0)
    if isinstance(count, Missing):
        return ()
    return range(1, min(count, MOST_PER_PROCESS * launch.world_size) + 1)


def _read_new(store: Store, launch: Launch, hellos: dict[int, Hello], refused: dict[int, str]) -> bool:
    new = False
    for ticket in drawn_tickets(store, launch):
        if ticket in hellos or ticket in refused:
            continue
        data = store.get_document(keys.hello(ticket))
        if isinstance(data, Missing):
            continue  # its ticket is drawn, its hello not yet written
        new = True
        try:
            hellos[ticket] = read_message(data, Hello, SMALL_LIMIT_BYTES)
        except DecodeError as error:
            refused[ticket] = str(error)
    return new


def _missing_nodes(hellos: Collection[Hello], launch: Launch) -> set[int]:
    return set(range(launch.nnodes)) - {hello.launch.node_rank for hello in hellos if hello.launch.is_agent}


def _few(ranks: set[int]) -> str:
    shown = ", ".join(str(rank) for rank in sorted(ranks)[:MOST_SHOWN])
    return f"{shown} and {len(ranks) - MOST_SHOWN} more" if len(ranks) > MOST_SHOWN else shown


def gather_answers(
    store: Store, tickets: Collection[int], key: Callable[[int], str], deadline: Deadline
) -> dict[int, bytes]:
    """Return the documents that were answered by the deadline, by ticket."""
    answers: dict[int, bytes] = {}
    for _ in polls(deadline):
        for ticket in tickets:
            if ticket not in answers:
                data = store.get_document(key(ticket))
                if not isinstance(data, Missing):
                    answers[ticket] = data
        if len(answers) == len(tickets) or store.lost is not None:
            break
    return answers
