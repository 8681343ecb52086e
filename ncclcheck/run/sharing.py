"""The step that proves a `--shared-dir` shared: every node leaves a mark, all look, and every mark is removed."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping

from msgspec.structs import replace

from ncclcheck.exchange.deadline import Deadline, polls
from ncclcheck.exchange.gather import gather_answers
from ncclcheck.exchange.messages import SCHEMA, SMALL_LIMIT_BYTES, Share, Shared, SharedFolder, read_message
from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.base import Store
from ncclcheck.facts.deadline import start
from ncclcheck.facts.storage.marks import Mark
from ncclcheck.facts.text_files import readable
from ncclcheck.model.codec import encode
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.snapshot import SharedView, Snapshot
from ncclcheck.run.context import TOOL_VERSION
from ncclcheck.run.lead import Member, Orders

WRITE_S = 4.0  # a mount that does not take a small file by then is called dead
_STARTED_S = 1.0  # more for the slowest node, after which the others look anyway
LOOK_S = 3.0
_REMOVE_S = 3.0
TOTAL_S = WRITE_S + 2 * _STARTED_S + LOOK_S + _REMOVE_S
_LIFETIME_S = 60.0  # of a mark whose process nobody speaks to any more
_NOT_OURS = Missing("denied", "this node's own command line does not name it as --shared-dir")


def share(
    orders: Orders,
    store: Store,
    agents: tuple[Member, ...],
    paths: tuple[str, ...],
    snapshot: Snapshot,
    deadline: Deadline,
) -> Snapshot:
    """The snapshot with what every node that is still there found in every shared folder of node 0."""
    gone = {one.host for one in snapshot.silent}
    there = tuple(one for one in agents if one.host not in gone)
    if not paths or len(there) <= 1:
        return snapshot
    if deadline.left() < TOTAL_S:
        late = Missing("timeout", "no time was left to try the shared folders")
        return replace(snapshot, shared=late)
    key = orders.give(Share(paths, tuple(one.ticket for one in there)))
    found = gather_answers(store, [one.ticket for one in there], key, deadline.within(TOTAL_S))
    views = tuple(view for one in there for view in views_of(one, there, found.get(one.ticket), paths))
    return replace(snapshot, shared=views)


def views_of(
    one: Member, agents: tuple[Member, ...], answer: bytes | None, paths: tuple[str, ...]
) -> tuple[SharedView, ...]:
    """What a node says of each path that was asked for; Missing where it says nothing that can be used."""
    hosts = {each.ticket: each.host for each in agents}
    silence = Missing("timeout", f"{one.host} did not tell what it found")
    folders: dict[str, SharedFolder] = {}
    if answer is not None:
        try:
            folders = {each.path: each for each in read_message(answer, Shared, SMALL_LIMIT_BYTES).folders}
        except DecodeError as error:
            silence = Missing("error", str(error))
    views = []
    for path in map(readable, paths):
        told = folders.get(path)
        if told is None:
            views.append(SharedView(one.host, path, silence, silence))
            continue
        saw: Fact[tuple[str, ...]] = told.saw if isinstance(told.saw, Missing) else ()
        if not isinstance(told.saw, Missing):
            saw = tuple(hosts[ticket] for ticket in told.saw if ticket in hosts)
        views.append(SharedView(one.host, path, told.wrote, saw, told.waited_s, told.left))
    return tuple(views)


def share_here(order: Share, own_paths: tuple[str, ...], store: Store, nonce: str, ticket: int) -> bytes:
    """This node's part, as the answer to node 0. Its marks are gone afterwards, whatever happens.

    Only folders that this node's own command line names are written to.
    """
    ours = {readable(path): path for path in own_paths if readable(path) in order.paths}
    deadline = Deadline(WRITE_S)
    marks = {
        path: Mark(folder, mark_name(nonce, ticket), mark_content(nonce, ticket), _LIFETIME_S)
        for path, folder in ours.items()
    }
    wrote: dict[str, Missing | None] = {}
    saw: dict[str, tuple[Fact[tuple[int, ...]], float]] = {}
    try:
        wrote = {path: mark.written(deadline.left()) for path, mark in marks.items()}
        _meet(store, keys.share_wrote(nonce), len(order.tickets), Deadline(deadline.left() + _STARTED_S))
        looks = {path: start(_look, mark, nonce, order.tickets) for path, mark in marks.items()}
        saw = {path: _pair(look.result(LOOK_S + _STARTED_S)) for path, look in looks.items()}
        _meet(store, keys.share_looked(nonce), len(order.tickets), Deadline(LOOK_S))
    finally:
        ends = {path: start(mark.close) for path, mark in marks.items()}
        left = {path: end.result(_REMOVE_S) for path, end in ends.items()}
    folders = [
        SharedFolder(path, wrote[path], *saw[path], left=str(left[path]))
        if path in ours
        else SharedFolder(path, _NOT_OURS, _NOT_OURS)
        for path in order.paths
    ]
    return encode(Shared(SCHEMA, TOOL_VERSION, tuple(folders)))


def mark_name(nonce: str, ticket: int) -> str:
    """The name of a node's mark: of this run, and without telling its nonce, since others may list the folder."""
    return f".ncclcheck-{_digest('marks', nonce)[:16]}-{ticket}"


def mark_content(nonce: str, ticket: int) -> str:
    """What is in it, which nobody knows who does not know the nonce."""
    return _digest(f"mark of {ticket}", nonce)


def _digest(purpose: str, nonce: str) -> str:
    return hashlib.sha256(f"{purpose} {nonce}".encode()).hexdigest()


def _meet(store: Store, key: str, count: int, deadline: Deadline) -> None:
    """Every node has come here, or the time is over."""
    if isinstance(store.add(key, 1), Missing):
        return
    for _ in polls(deadline):
        value = store.get(key)
        if isinstance(value, Missing) or (value.isdigit() and int(value) >= count):
            return


def _look(mark: Mark, nonce: str, tickets: tuple[int, ...]) -> tuple[Fact[tuple[int, ...]], float]:
    names: Mapping[str, int] = {mark_name(nonce, ticket): ticket for ticket in tickets}
    began = time.monotonic()
    seen = mark.seen({name: mark_content(nonce, ticket) for name, ticket in names.items()}, LOOK_S)
    waited_s = round(time.monotonic() - began, 2)
    return seen if isinstance(seen, Missing) else tuple(sorted(names[name] for name in seen)), waited_s


def _pair(found: tuple[Fact[tuple[int, ...]], float] | Missing) -> tuple[Fact[tuple[int, ...]], float]:
    return (found, 0.0) if isinstance(found, Missing) else found
