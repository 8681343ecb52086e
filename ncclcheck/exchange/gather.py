"""Node 0 gathers which processes joined and what each answered, with a deadline for every wait."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TypeVar

from msgspec import Struct

from ncclcheck import timeouts
from ncclcheck.exchange.awake import awake_s
from ncclcheck.exchange.deadline import Deadline, polls
from ncclcheck.exchange.messages import SMALL_LIMIT_BYTES, Hello, MessageVersion, read_message, unpack
from ncclcheck.exchange.own_build import own_build
from ncclcheck.exchange.probe.half_open import half_open
from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.base import Store
from ncclcheck.launch.by_hosts import LaunchedProcess, missing_ranks
from ncclcheck.model.codec import decode
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.fact import Missing
from ncclcheck.model.formats.prose import listed
from ncclcheck.model.launch import Launch

T = TypeVar("T")
MOST_PER_PROCESS = 8  # tickets read per expected process: a counter that says more was tampered with
MOST_SHOWN = 8
_MOST_OF_BUILD = 60
_RESTS = 4  # a look at each of thousands of keys is followed by a pause that is so many times as long

# Whoever reaches the store can claim any numbers, and all ranks that are missing are counted
_MOST_RANKS, _MOST_LOCAL_RANKS = 1 << 18, 1 << 12


class Arrivals(Struct, frozen=True):
    """The processes that joined by the deadline: hellos by ticket, and refused tickets with the reason."""

    hellos: dict[int, Hello]
    refused: dict[int, str]
    waited_s: float


def gather_hellos(
    store: Store,
    launch: Launch,
    given_up: Callable[[], Collection[int]],
    deadline: Deadline,
    say: Callable[[str], None],
    *,
    meanwhile: Callable[[Collection[int]], None] = lambda _: None,
) -> Arrivals:
    """Wait until every expected process has come, or it is certain that the missing ones will not.

    `meanwhile` is called again and again while others are waited for, with the tickets of the processes that joined.

    Certain: each missing node (rank) is known to have given up; or as many processes joined as were expected, with
    ranks that clash, and no other joined for a while.
    """
    started = awake_s()
    hellos: dict[int, Hello] = {}
    refused: dict[int, str] = {}
    last_arrival, looked, times_said, is_explained = started, started, 0, False
    for _ in polls(deadline):
        thorough = deadline.passed or awake_s() - looked > timeouts.THOROUGH_LOOK_S
        if _read_new(store, launch, hellos, refused, thorough=thorough):
            last_arrival = looked = awake_s()
        looked = awake_s() if thorough else looked
        missing = _missing_nodes(hellos.values(), launch)
        quiet_s = awake_s() - last_arrival
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
        meanwhile(hellos)
        waited_s = awake_s() - started
        if waited_s > 3.0 * (times_said + 1):
            times_said += 1
            missing_text = _missing_text(missing, launch, arrived)
            say(f"waiting for {missing_text} ({deadline.left():.0f} s left)")
        if waited_s > timeouts.SILENCE_TOLD_S and missing and not is_explained:
            is_explained = True
            for line in _why_silent(missing - set(given_up()), launch):
                say(line)
    return Arrivals(hellos, refused, round(awake_s() - started, 1))


def _missing_text(missing: set[int], launch: Launch, arrived: int) -> str:
    if not missing:
        return f"{launch.world_size - arrived} further processes of the nodes that came"
    return f"{_ranks(missing, launch)} of {launch.most_node_ranks}"


def _ranks(missing: set[int], launch: Launch) -> str:
    return f"{'node rank' if launch.told == 'place' else 'rank'} {listed(sorted(missing), MOST_SHOWN)}"


def late_hellos(store: Store, launch: Launch, arrivals: Arrivals) -> tuple[Hello, ...]:
    """Return processes that joined after `arrivals` was complete: they were asked nothing."""
    hellos, refused = dict(arrivals.hellos), dict(arrivals.refused)
    _read_new(store, launch, hellos, refused, thorough=True)
    return tuple(hello for ticket, hello in hellos.items() if ticket not in arrivals.hellos)


def drawn_tickets(store: Store, launch: Launch) -> Collection[int]:
    """Return the tickets drawn so far; of more than a job of this size can draw, the first ones."""
    count = store.add(keys.TICKETS, 0)
    if isinstance(count, Missing):
        return ()
    return range(1, min(count, MOST_PER_PROCESS * launch.world_size) + 1)


def _read_new(
    store: Store, launch: Launch, hellos: dict[int, Hello], refused: dict[int, str], *, thorough: bool
) -> bool:
    """Read the hellos of the tickets drawn since; one whose ticket is drawn may not be written yet."""
    drawn = drawn_tickets(store, launch)
    key_of = {
        keys.hello(ticket): ticket for ticket in drawn if ticket not in hellos and ticket not in refused
    }
    found = store.get_documents(tuple(key_of), thorough=thorough)
    for key, data in found.items():
        try:
            hello = read_message(data, Hello, SMALL_LIMIT_BYTES)
        except DecodeError as error:
            refused[key_of[key]] = _another_build(data) or str(error)
            continue
        if max(hello.launch.world_size, hello.launch.nnodes) > _MOST_RANKS:
            refused[key_of[key]] = f"it claims a job of {hello.launch.world_size} processes"
        elif hello.launch.local_world_size > _MOST_LOCAL_RANKS:
            refused[key_of[key]] = f"it claims {hello.launch.local_world_size} processes on its node"
        else:
            hellos[key_of[key]] = hello
    return bool(found)


def _another_build(data: bytes) -> str:
    """Return which other ncclcheck wrote a hello that cannot be read; nothing where it is not known to be another."""
    try:
        build = decode(unpack(data, SMALL_LIMIT_BYTES), MessageVersion).tool_version
    except DecodeError:
        return ""
    if not build or build == own_build():
        return ""
    return f"it is of ncclcheck {build[:_MOST_OF_BUILD]!r}, and node 0 runs {own_build()}"


def processes_of(hellos: Mapping[int, Hello]) -> dict[int, LaunchedProcess]:
    """Return the processes that joined, by ticket, as they are counted by host."""
    return {
        ticket: LaunchedProcess(hello.launch, hello.host, hello.machine)
        for ticket, hello in hellos.items()
        if hello.launch.told != "place"
    }


def _missing_nodes(hellos: Collection[Hello], launch: Launch) -> set[int]:
    """Return the missing node ranks; where no launcher gives node ranks, the ranks of the missing nodes."""
    if launch.told != "place":
        return missing_ranks(processes_of(dict(enumerate(hellos))).values())
    return set(range(launch.nnodes)) - {hello.launch.node_rank for hello in hellos if hello.launch.is_agent}


def _why_silent(missing: set[int], launch: Launch) -> list[str]:
    """Return lines for people: which nodes are missing, and why that may be."""
    if not missing:
        return []
    is_listed = launch.told == "place" and len(launch.hosts) == launch.nnodes
    known = [launch.hosts[rank] for rank in sorted(missing)] if is_listed else []
    names = f" ({', '.join(known[:MOST_SHOWN])})" if known else ""
    port = launch.master_port
    lines = [
        f"nothing is heard of {_ranks(missing, launch)}{names} by TCP, by datagram, or through another node: it was "
        "not started, or starts slowly; its network is down; it was told another master address than "
        f"{launch.master_addr}; or a firewall drops TCP and UDP port {port} on the path. Its own output says which"
    ]
    callers = sorted(half_open({port}))[:MOST_SHOWN]
    if callers:
        lines.append(
            f"{', '.join(callers)} calls port {port} here and does not get the answers: a firewall there, or on the "
            "way to it, drops them"
        )
    return lines


def gather_answers(
    store: Store,
    tickets: Collection[int],
    key: Callable[[int], str],
    deadline: Deadline,
    *,
    read: Callable[[int, bytes], None] = lambda *_: None,
) -> dict[int, bytes]:
    """Return the documents that were answered by the deadline, by ticket; `read` gets each as it arrives.

    As long as answers still arrive, they are waited for beyond it, until the end of the whole that it is a part of:
    where thousands answer, or node 0 has no core, a late answer is no silence.

    They are asked for together. Only after a while in which no group of them was complete, and in the end, it is asked
    which ones of a group are there.
    """
    answers: dict[int, bytes] = {}
    waiting = {key(ticket): ticket for ticket in tickets}

    def take(ticket: int, data: bytes) -> None:
        answers[ticket] = data
        read(ticket, data)

    while waiting and store.lost is None:
        arrived = _gathered(store, waiting, take, deadline)
        if deadline.whole.passed or awake_s() - arrived > timeouts.STILL_ARRIVING_S:
            break
        deadline = deadline.whole.within(timeouts.STILL_ARRIVING_S)
    return answers


def gather_read(
    store: Store,
    tickets: Collection[int],
    key: Callable[[int], str],
    deadline: Deadline,
    *,
    read: Callable[[bytes], T],
) -> tuple[dict[int, T], dict[int, str]]:
    """Return what the answers say, by ticket, and why others were refused: each is read as it arrives."""
    accepted: dict[int, T] = {}
    refused: dict[int, str] = {}

    def take(ticket: int, data: bytes) -> None:
        try:
            accepted[ticket] = read(data)
        except DecodeError as error:
            refused[ticket] = str(error)

    gather_answers(store, tickets, key, deadline, read=take)
    return accepted, refused


def _gathered(
    store: Store, waiting: dict[str, int], take: Callable[[int, bytes], None], deadline: Deadline
) -> float:
    """Take what arrives by the deadline out of `waiting`; return when (`awake_s`) the last of it arrived."""
    arrived, looked, pause_s = 0.0, awake_s(), timeouts.THOROUGH_LOOK_S
    for _ in polls(deadline):
        started = awake_s()
        thorough = deadline.passed or started - looked > pause_s
        found = store.get_documents(tuple(waiting), thorough=thorough)
        asked_s = awake_s() - started
        for name, data in found.items():
            take(waiting.pop(name), data)
        now = awake_s()  # what is taken is decoded, too: of thousands that takes a while, and others arrive
        if thorough or found:
            looked = now
        if thorough:  # it asks for each: of thousands it may not take most of the time
            pause_s = max(timeouts.THOROUGH_LOOK_S, _RESTS * asked_s)
        arrived = now if found else arrived
        if not waiting or store.lost is not None:
            break
    return arrived
